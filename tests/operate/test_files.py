"""The dashboard and the alert rules name only metrics that there are, and are well-formed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import django_once.contrib.prometheus as package
from django_once.contrib.prometheus.families import families
from tests.docs.pages import DOCS, quoted, rows, sections

FILES = Path(package.__file__).parent / "files"
# As metrics stand in the expressions of Prometheus.
NAMED = re.compile(r"\bdjango_once_(\w+)\b")


def names() -> set[str]:
    return {family.name for family in _every()}


def _every():
    from django_once.contrib.prometheus.families import _Told

    return _Told().all


def test_every_metric_is_documented_and_nothing_else_is():
    text = sections(DOCS / "how-to" / "metrics.md")["What is told"]

    assert {name for cells in rows(text) for name in quoted(cells[0])} == names()
    assert [family.name for family in families([])] == [family.name for family in _every()]


def test_the_dashboard_loads_and_asks_for_metrics_that_there_are():
    board = json.loads((FILES / "grafana.json").read_text())

    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert set(NAMED.findall(" ".join(expressions))) <= names()
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"]) >= 12
    assert all(text.count("(") == text.count(")") for text in expressions)
    assert board["schemaVersion"] >= 36
    assert {one["name"] for one in board["templating"]["list"]} == {
        "datasource", "backend", "queue",
    }  # fmt: skip
    for panel in board["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24


def test_alert_rules_ask_for_metrics_that_there_are_and_say_what_to_do():
    text = (FILES / "alerts.yml").read_text()
    alerts = text.split("- alert: ")[1:]

    assert len(alerts) >= 6
    assert set(NAMED.findall(text)) <= names()
    for alert in alerts:
        assert re.match(r"DjangoOnce\w+\n", alert)
        assert re.search(r"\n        expr: .+", alert)
        assert re.search(r"severity: (warning|critical)", alert)
        assert "summary: '" in alert
        assert re.search(r"description: '.*once", alert)
    commands = set(re.findall(r"manage\.py once (\w+)", text))
    from django_once.management.verbs import VERBS

    assert commands <= set(VERBS)
