"""The dashboard in a real browser, under a strict policy: what moves, what fits, what can be done.

It needs Chromium and playwright; where either is missing, it is skipped and says which.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client

import django_once
from django_once.models import Job, Progress
from django_once.models.job.settle import settle
from tests.dashboard.people import HOME, failed
from tests.jobs import a_worker, claim, claim_one, row, store, store_many, success

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed here")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

pytestmark = [
    pytest.mark.engine,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls("tests.dashboard.urls"),
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed here"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
PAGES = (
    "", "jobs/", "jobs/?q=state:faild", "failures/", "schedules/", "queues/", "workers/", "locks/",
    "series/", "channels/", "audit/", "confirm/?verb=retry&q=state:failed",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser(django_db_setup: None) -> Iterator[Any]:
    # The browser's library keeps an event loop in this thread, which asks the database nothing.
    with pytest.MonkeyPatch.context() as patch, playwright.sync_playwright() as started:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        found = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def site(settings: Any, tmp_path: Path, request: Any) -> Any:
    for package in (admin, django_once):
        shutil.copytree(Path(package.__file__).parent / "static", tmp_path, dirs_exist_ok=True)
    settings.STATIC_ROOT = str(tmp_path)
    settings.MIDDLEWARE = ["tests.dashboard.urls.strict", *settings.MIDDLEWARE]
    server = request.getfixturevalue("live_server")
    settings.ALLOWED_HOSTS = ["*"]
    return server


class Visitor:
    """A person at a browser, and everything that went wrong there."""

    def __init__(self, browser: Any, site: Any, **context: Any) -> None:
        self.site = site
        self.context = browser.new_context(**context)
        client = Client()
        user, _ = User.objects.get_or_create(username="ann", is_staff=True, is_superuser=True)
        client.force_login(user)
        cookie = {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": site.url}
        self.context.add_cookies([cookie])
        self.page = self.context.new_page()
        self.wrong: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", lambda one: self.asked.append(one.url))

    def goes(self, address: str = "") -> Any:
        self.page.goto(f"{self.site.url}{HOME}{address}")
        return self.page

    def _heard(self, message: Any) -> None:
        # A filter that does not parse is answered with 400, which the console tells as well.
        if message.type in ("error", "warning") and "status of 400" not in message.text:
            self.wrong.append(message.text)


def some_work() -> None:
    failed(3, task="shop.charge")
    worker = a_worker("web-1", queues='["*"]', concurrency=4)
    store_many(2, queue="mail")
    settle("default", [success(one) for one in claim(worker, 2)])
    store_many(3, queue="mail")
    store(run_after=timedelta(hours=1))
    store(task="shop." + "a_very_long_name_" * 8, queue="q" * 60)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_every_page_fits_and_nothing_is_wrong(browser, site, width, colours):
    some_work()
    visitor = Visitor(browser, site, viewport={"width": width, "height": 844}, color_scheme=colours)
    shots = os.environ.get("ONCE_TEST_SCREENSHOTS")

    for number, address in enumerate(PAGES):
        page = visitor.goes(address)
        wider = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wider <= 0, (address, wider)
        assert page.locator("#content-main.once").count() == page.locator("h1").count() == 1
        if shots:
            page.screenshot(path=f"{shots}/{number}-{width}-{colours}.png", full_page=True)
    assert visitor.wrong == []
    assert {url.split("/")[2] for url in visitor.asked} == {site.url.split("/")[2]}


def test_numbers_move_by_themselves_and_stop_where_nobody_looks(browser, site):
    store_many(2)
    visitor = Visitor(browser, site)
    page = visitor.goes()
    ready = page.locator(".once-tiles dd").first
    assert ready.inner_text() == "2"

    store_many(5)
    playwright.expect(ready).to_have_text("7", timeout=20_000)

    page.evaluate(
        "Object.defineProperty(document, 'hidden', {get: () => true});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    before = len(visitor.asked)
    store()
    page.wait_for_timeout(4_000)
    assert len(visitor.asked) == before
    assert visitor.wrong == []


def test_what_somebody_types_is_not_replaced(browser, site):
    store(queue="mail")
    page = Visitor(browser, site).goes("queues/")
    reason = page.get_by_label("Reason to pause queue mail")
    reason.fill("relay down")

    store_many(3, queue="low")
    page.wait_for_timeout(4_000)

    assert reason.input_value() == "relay down"
    page.get_by_label("Pause queue mail", exact=True).click()
    assert page.get_by_text("relay down").count()


def test_all_that_match_are_retried_by_clicks(browser, site, monkeypatch):
    from django_once.dashboard import bulk

    monkeypatch.setattr(bulk, "BATCH", 2)
    monkeypatch.setattr(bulk, "SECONDS", -1.0)
    jobs = failed(7)
    visitor = Visitor(browser, site)
    page = visitor.goes("failures/")

    page.get_by_role("link", name="Retry all").click()
    page.get_by_role("button", name="Retry 7 jobs").click()
    playwright.expect(page.locator(".messagelist")).to_contain_text(
        "Retried 7 jobs", timeout=20_000
    )

    assert {row(job).status for job in jobs} == {"READY"}
    assert visitor.wrong == []


def test_it_works_without_javascript_and_by_keyboard(browser, site):
    job = failed()[0]
    page = Visitor(browser, site, java_script_enabled=False).goes("jobs/")

    page.get_by_label("Filter", exact=True).fill("state:failed")
    page.keyboard.press("Enter")
    page.get_by_label(f"Select job {str(job)[:8]}").focus()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Retry selected").press("Enter")

    assert page.locator(".messagelist").inner_text() == "1 job retried."
    assert row(job).status == "READY"


def test_a_bar_in_a_page_of_the_projects_own_moves(browser, site):
    job = store()
    visitor = Visitor(browser, site)
    visitor.page.goto(f"{site.url}/bar/{job}/")
    line = visitor.page.get_by_label("Import")

    attempt = claim_one()
    Progress.objects.create(job=job, done=1, total=4, message="page 1")
    playwright.expect(line).to_have_attribute("value", "0.25", timeout=20_000)
    settle("default", [success(attempt)])
    playwright.expect(line).to_have_attribute("value", "1", timeout=20_000)

    assert Job.objects.get().status == "SUCCESSFUL"
    assert visitor.wrong == []
