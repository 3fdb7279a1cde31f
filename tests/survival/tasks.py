"""The tasks of this app, where a worker finds them."""

from __future__ import annotations

from tests.survival import bodies, poison

__all__ = ["bodies", "poison"]
