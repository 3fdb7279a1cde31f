"""What the shop does in the background."""

import json
import os
import time

from django.conf import settings
from django_once import Retry, task
from shop.models import Charge, Order


@task(queue_name="billing", delivery="exactly_once", takes_context=True)
def charge(context, number):
    """Take the money, and ask for the receipt: both commit with this job's success, or not at all."""
    order = Order.objects.get(number=number)
    Charge.objects.create(
        order_number=number, amount=order.amount, attempt=context.attempt
    )
    # Long enough that a kill finds bodies here, where the charge is written and not committed.
    time.sleep(0.004)
    send_receipt.enqueue(number)


@task(queue_name="mail", retry=Retry(max_attempts=5, base="200ms"), takes_context=True)
def send_receipt(context, number):
    """Send an e-mail. It is no row, so it can be sent again after a crash; its key tells."""
    if number % 50 == 0 and context.attempt == 1:
        raise ConnectionError("The mail service was busy.")
    send_mail(key=context.idempotency_key("receipt"), order=number, attempt=context.attempt)
    # The mail is out and its job is not settled: a kill in here repeats it.
    time.sleep(0.03)


def send_mail(**mail):
    """Hand an e-mail to the outside world: a line in a file that no transaction undoes."""
    line = json.dumps(mail).encode() + b"\n"
    outbox = os.open(settings.OUTBOX, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(outbox, line)
    finally:
        os.close(outbox)
