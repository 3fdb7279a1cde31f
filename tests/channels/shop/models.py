"""Tables of every kind of column, key and inheritance."""

from __future__ import annotations

import uuid

import django
from django.db import models


class Author(models.Model):
    """Somebody, whose changes are heard."""

    name = models.CharField(max_length=200)
    active = models.BooleanField(default=True)
    born = models.DateField(null=True)

    def __str__(self) -> str:
        return self.name


class Post(models.Model):
    """What a listener writes."""

    author = models.ForeignKey(Author, on_delete=models.CASCADE)
    content = models.TextField(default="")

    def __str__(self) -> str:
        return self.content


class Everything(models.Model):
    """One column of each kind."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    name = models.CharField(max_length=200, default="", db_column="odd 'name of")
    text = models.TextField(default="")
    price = models.DecimalField(max_digits=24, decimal_places=10, null=True)
    ratio = models.FloatField(null=True)
    count = models.BigIntegerField(null=True)
    flag = models.BooleanField(null=True)
    at = models.DateTimeField(null=True)
    day = models.DateField(null=True)
    hour = models.TimeField(null=True)
    length = models.DurationField(null=True)
    blob = models.BinaryField(null=True)
    data = models.JSONField(null=True)
    address = models.GenericIPAddressField(null=True)
    author = models.ForeignKey(Author, null=True, on_delete=models.SET_NULL, db_column="Writer")

    class Meta:
        db_table = "shop every'thing"

    def __str__(self) -> str:
        return self.name


class Parent(models.Model):
    """A table of which another is a part."""

    id = models.BigAutoField(primary_key=True)
    title = models.CharField(max_length=200, default="")

    def __str__(self) -> str:
        return self.title


class Child(Parent):
    """A table whose key is its parent's."""

    size = models.IntegerField(default=0)


class Heard(models.Model):
    """An account of what listeners heard, with a number that each writes once."""

    what = models.CharField(max_length=200)
    about = models.TextField(default="")
    by = models.CharField(max_length=200, default="")

    def __str__(self) -> str:
        return self.what


class Stock(models.Model):
    """What is counted, one after the other for each place."""

    place = models.CharField(max_length=200)
    amount = models.IntegerField(default=0)

    def __str__(self) -> str:
        return self.place


if django.VERSION >= (5, 2):

    class Line(models.Model):
        """A row whose key is two columns."""

        pk = models.CompositePrimaryKey("order_id", "number")
        order_id = models.IntegerField()
        number = models.IntegerField()
        label = models.CharField(max_length=200, default="")

        def __str__(self) -> str:
            return self.label
