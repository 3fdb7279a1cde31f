"""What the database undid is sent again, unless more than the statement was undone."""

from __future__ import annotations

import pytest
from django.db import OperationalError, connection, transaction

from django_once import task
from django_once.models import Job
from django_once.sql.repeat import TIMES, repeated, was_undone

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]


class Named(Exception):
    """An error as drivers raise them, with what they say of it."""

    def __init__(self, *arguments, **said):
        super().__init__(*arguments)
        self.__dict__.update(said)


def raised(cause):
    error = OperationalError("undone")
    error.__cause__ = cause
    return error


DEADLOCK = Named(1213, "Deadlock found", sqlstate="40P01")


@pytest.mark.parametrize(
    ("cause", "undone"),
    [
        (Named(sqlstate="40P01"), True),
        (Named(pgcode="40001"), True),
        (Named(1213, "Deadlock found"), True),
        (Named(2013, "Lost connection"), False),
        (Named(sqlstate="57P01"), False),
        (None, False),
    ],
)
def test_what_was_undone_is_known_by_each_drivers_word(cause, undone):
    assert was_undone(raised(cause)) is undone


def test_a_conflict_is_tried_again_and_not_for_ever():
    sent = []

    def statement():
        sent.append(len(sent))
        raise raised(DEADLOCK)

    with pytest.raises(OperationalError):
        repeated(connection, statement)

    assert len(sent) == TIMES


@pytest.fixture(params=["atomic", "without autocommit"])
def a_transaction(request):
    if request.param == "atomic":
        with transaction.atomic():
            yield
        return
    transaction.set_autocommit(False)
    yield
    transaction.rollback()
    transaction.set_autocommit(True)


@pytest.mark.usefixtures("a_transaction")
def test_in_the_callers_transaction_a_conflict_is_the_callers():
    sent = []

    def statement():
        sent.append(1)
        raise raised(DEADLOCK)

    with pytest.raises(OperationalError):
        repeated(connection, statement)

    assert sent == [1]


@task
def add(a):
    return a


def test_without_autocommit_a_job_exists_if_its_transaction_commits():
    transaction.set_autocommit(False)
    try:
        add.enqueue(1)
        transaction.rollback()
        add.enqueue(2)
        add.enqueue_many([((3,), {}), ((4,), {})])
        transaction.commit()
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)

    assert sorted(Job.objects.values_list("args", flat=True)) == ["[2]", "[3]", "[4]"]
