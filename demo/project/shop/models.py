"""What the shop keeps: orders, and what was charged for them."""

from django.db import models

# Numbers from here on belong to orders whose process is killed before their COMMIT.
FIRST_DOOMED = 1_000_000


class Order(models.Model):
    """What a customer asked for."""

    number = models.IntegerField(unique=True)
    amount = models.IntegerField()
    placed_at = models.DateTimeField(auto_now_add=True)

    def __str__(self):
        return f"order {self.number}"


class Charge(models.Model):
    """Money taken for an order. Nothing here is unique: a second charge would stand in the books."""

    order_number = models.IntegerField()
    amount = models.IntegerField()
    attempt = models.IntegerField()

    def __str__(self):
        return f"charge of order {self.order_number}"
