"""Fences for users: a write with a lower fence changes nothing, whoever sends it."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from asgiref.sync import async_to_sync
from django.apps import apps
from django.db import DatabaseError, connection, transaction
from django.db.migrations.state import ProjectState

from django_once.errors import FenceRefused, InvalidOption
from django_once.locks import guard, lock
from django_once.models.fenced import RefuseLowerFences
from django_once.testing import moved_clock
from tests.app.models import Note, Report
from tests.jobs import in_threads

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.engine]


@pytest.fixture
def reports(db):
    Report.objects.create(pk=1, body="old")
    Report.objects.create(pk=2, body="old")
    return Report.objects.all()


def contents():
    return list(Report.objects.order_by("pk").values_list("body", "fence"))


def test_a_higher_fence_and_the_same_one_write(reports):
    assert guard(reports, 7).update(body="a") == 2
    assert guard(reports, 7).update(body="b") == 2
    assert guard(reports, 9).update(body="c") == 2

    assert contents() == [("c", 9), ("c", 9)]


def test_a_lower_fence_is_refused_and_told(reports):
    guard(reports.filter(pk=1), 9).update(body="new")

    with pytest.raises(FenceRefused, match="has seen fence 9, and this write carries 7"):
        guard(reports.filter(pk=1), 7).update(body="late")

    assert contents()[0] == ("new", 9)


def test_all_is_written_or_nothing(reports):
    guard(reports.filter(pk=2), 9).update(body="new")

    with pytest.raises(FenceRefused):
        guard(reports, 7).update(body="late")

    assert contents() == [("old", 0), ("new", 9)]


def test_no_row_is_no_refusal(reports):
    assert guard(reports.filter(pk=99), 7).update(body="a") == 0


def test_a_delete_carries_a_fence_too(reports):
    guard(reports.filter(pk=1), 9).update(body="new")

    with pytest.raises(FenceRefused):
        guard(reports, 7).delete()
    assert len(contents()) == 2

    assert guard(reports, 9).delete() == 2


def test_async_code_writes_under_a_fence(reports):
    async def write():
        return await guard(Report.objects.filter(pk=1), 3).aupdate(body="new")

    assert async_to_sync(write)() == 1
    assert contents()[0] == ("new", 3)


def test_of_two_at_once_the_higher_fence_stays(reports):
    def write(fence):
        try:
            return guard(Report.objects.filter(pk=1), fence).update(body=str(fence))
        except FenceRefused:
            return 0

    in_threads(*[lambda fence=fence: write(fence) for fence in (3, 9, 5, 7)])

    assert contents()[0] == ("9", 9)


def test_a_paused_holder_writes_nothing_after_its_successor(reports):
    paused = lock("report", lease="1m").acquire()
    with moved_clock("2m"), lock("report") as successor:
        guard(reports, successor.fence).update(body="fresh")

    with pytest.raises(FenceRefused):
        guard(reports, paused.fence).update(body="late")

    assert contents()[0] == ("fresh", successor.fence)


@pytest.mark.parametrize("fence", [0, -1, None, "7", True])
def test_what_is_no_fence_is_refused(reports, fence):
    with pytest.raises(InvalidOption, match="whole number from 1"):
        guard(reports, fence)


def test_a_model_without_the_column_is_refused():
    with pytest.raises(InvalidOption, match="FencedModel"):
        guard(Note.objects.all(), 7)


def test_the_fence_is_not_to_be_set_by_hand(reports):
    with pytest.raises(InvalidOption, match="by itself"):
        guard(reports, 7).update(fence=9)


@pytest.fixture
def trigger(db):
    operation, state = RefuseLowerFences("Report"), ProjectState.from_apps(apps)
    with connection.schema_editor() as editor:
        operation.database_forwards("app", editor, state, state)
    yield
    with connection.schema_editor() as editor:
        operation.database_backwards("app", editor, state, state)


def test_the_trigger_refuses_whoever_forgets_the_guard(trigger, reports):
    guard(reports, 9).update(body="new")

    with pytest.raises(DatabaseError, match="lower fence"), transaction.atomic():
        Report.objects.filter(pk=1).update(body="late", fence=7)
    Report.objects.filter(pk=2).update(body="same", fence=9)

    assert contents() == [("new", 9), ("same", 9)]


def test_the_trigger_goes_as_it_came(reports):
    operation, state = RefuseLowerFences("Report"), ProjectState.from_apps(apps)
    for change in (operation.database_forwards, operation.database_backwards):
        with connection.schema_editor() as editor:
            change("app", editor, state, state)

    guard(reports, 9).update(body="new")
    Report.objects.update(fence=7)

    assert contents()[0] == ("new", 7)
    assert operation.describe() == "Refuse lower fences in Report"


class Shelf(BaseHTTPRequestHandler):
    """A service that is no database: it keeps the highest fence, and refuses a lower one."""

    def do_PUT(self):
        fence = int(self.headers["X-Fence"])
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        with self.server.writing:
            is_open = fence >= self.server.fence
            if is_open:
                self.server.fence, self.server.body = fence, body
        self.send_response(204 if is_open else 412)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def shelf():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Shelf)
    server.writing, server.fence, server.body = threading.Lock(), 0, ""
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def put(server, body, fence):
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.server_port}/report", json.dumps(body).encode(),
        {"X-Fence": str(fence)}, method="PUT",
    )  # fmt: skip
    with urllib.request.urlopen(request, timeout=5) as answer:
        return answer.status


def test_a_service_over_http_refuses_the_paused_holder(shelf):
    paused = lock("report", lease="1m").acquire()
    with moved_clock("2m"), lock("report") as successor:
        assert put(shelf, "fresh", successor.fence) == 204

    with pytest.raises(urllib.error.HTTPError, match="412"):
        put(shelf, "late", paused.fence)

    assert json.loads(shelf.body) == "fresh"
