"""The shop as an app."""

from __future__ import annotations

from django.apps import AppConfig


class ShopConfig(AppConfig):
    """Of the tests alone."""

    name = "tests.channels.shop"
    label = "shop"
