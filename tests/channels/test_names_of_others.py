"""What users of another library rely on: contexts where nothing goes, moments as settings say."""

from __future__ import annotations

from contextlib import suppress

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import override_settings

from django_once.channels import notify, set_notification_context
from django_once.models import Notification
from tests.channels.shop.channels import OrderPlaced

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]


def test_a_context_in_a_transaction_that_was_broken_in_silence_is_no_error():
    with transaction.atomic():
        with suppress(DatabaseError), connection.cursor() as cursor:
            cursor.execute("this is no statement")
        set_notification_context({"user": 7}, lasts="transaction")
        transaction.set_rollback(True)

    assert connection.is_usable()


def test_when_it_was_stored_is_shown_as_the_settings_want_it():
    notify(OrderPlaced, order_id=1)
    aware = Notification.objects.all()[0].created_at

    with override_settings(USE_TZ=False):
        naive = Notification.objects.all()[0].created_at

    assert aware.tzinfo is not None
    assert naive.tzinfo is None
