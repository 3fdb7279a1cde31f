"""The shop's one view."""

import sys
import time

from django.db import transaction
from django.http import JsonResponse
from django.views.decorators.csrf import csrf_exempt
from shop.models import Order
from shop.tasks import charge


@csrf_exempt
def place_order(request):
    """Store an order and the job that charges it, in one transaction."""
    number = int(request.POST["number"])
    with transaction.atomic():
        Order.objects.create(number=number, amount=100 + number % 900)
        job = charge.enqueue(number)
        if request.POST.get("hold"):
            wait_to_be_killed(number, job.id)
    return JsonResponse({"order": number, "job": job.id}, status=201)


def wait_to_be_killed(number, job):
    """Say that order and job are written and not committed, and go no further."""
    print("held", number, job, flush=True)
    time.sleep(60)
    sys.exit("Nobody killed this process.")
