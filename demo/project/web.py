"""The web process: real requests through Django's handler, one order after the other.

    python web.py --orders 1000 --per-second 60

Started again, it goes on with the orders that are not there yet. At SIGUSR1 the next order is one
that stops between INSERT and COMMIT, so that whoever sent the signal can kill the process there.
"""

import argparse
import os
import signal
import sys
import threading
import time

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")

import django  # noqa: E402 - the settings have to be named first

django.setup()

from django.test import Client  # noqa: E402
from shop.models import FIRST_DOOMED, Order  # noqa: E402

doomed = []


def main():
    """Place the orders that are missing, at an even pace."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--orders", type=int, required=True)
    parser.add_argument("--per-second", type=float, required=True)
    wish = parser.parse_args()
    signal.signal(signal.SIGUSR1, lambda *_: doomed.append(FIRST_DOOMED + os.getpid()))
    threading.Thread(target=leave_with_the_conductor, daemon=True).start()
    there = set(Order.objects.values_list("number", flat=True))
    place([number for number in range(1, wish.orders + 1) if number not in there], wish.per_second)


def place(numbers, per_second):
    """Place these orders, none before its time."""
    client = Client()
    print("open", flush=True)
    began = time.monotonic()
    for turn, number in enumerate(numbers):
        time.sleep(max(0.0, began + turn / per_second - time.monotonic()))
        if doomed:
            client.post("/orders/", {"number": doomed.pop(), "hold": "yes"})
        answer = client.post("/orders/", {"number": number})
        if answer.status_code != 201:
            sys.exit(f"Order {number} was answered with {answer.status_code}.")
    print("done", flush=True)
    # It serves no more, but lives on: the play may still want to kill it.
    while not doomed:
        time.sleep(0.05)
    client.post("/orders/", {"number": doomed.pop(), "hold": "yes"})


def leave_with_the_conductor():
    """End when the line to the conductor closes."""
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
