"""Reading the text format of Prometheus as strictly as its own tool does, and judging it."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
LINE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (-?[0-9.]+(?:e[+-]?\d+)?|[+-]Inf)")
ONE = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\\n]|\\["\\n])*)"')
KINDS = {"counter", "gauge", "histogram", "summary", "untyped"}


class Sample(NamedTuple):
    """One number, with its name and labels."""

    name: str
    labels: frozenset[tuple[str, str]]
    value: float


def read(text: str) -> tuple[list[Sample], dict[str, str]]:
    """Return the samples, and the kind of each family; refuse what is malformed."""
    assert text == "" or text.endswith("\n")
    samples: list[Sample] = []
    kinds: dict[str, str] = {}
    helps: Counter[str] = Counter()
    families: list[str] = []
    for line in text.splitlines():
        if line.startswith("# HELP "):
            _, _, name, told = line.split(" ", 3)
            helps[name] += 1
            assert told.strip(), line
            assert re.fullmatch(r"(?:[^\\]|\\[\\n])*", told), line
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert kind in KINDS, line
            assert name not in kinds, f"{name} has two types"
            assert helps[name] == 1, f"{name} has no HELP before its TYPE"
            kinds[name] = kind
        else:
            found = LINE.fullmatch(line)
            assert found, f"malformed: {line!r}"
            name, labels, value = found.groups()
            assert name in kinds, f"{name} comes before its TYPE"
            if not families or families[-1] != name:
                assert name not in families, f"{name} is not in one place"
                families.append(name)
            pairs = ONE.findall(labels or "")
            assert len(dict(pairs)) == len(pairs), f"a label twice: {line}"
            samples.append(Sample(name, frozenset(pairs), float(value)))
    assert set(kinds) == set(families), "a family without samples"
    assert len({(one.name, one.labels) for one in samples}) == len(samples), "a sample twice"
    return samples, kinds


def judged(text: str) -> list[str]:
    """Return what a linter would say of well-formed text."""
    samples, kinds = read(text)
    said = []
    for name, kind in kinds.items():
        if (kind == "counter") != name.endswith("_total"):
            said.append(f"{name}: a counter, and nothing else, ends in _total")
        if re.search(r"_(milliseconds|minutes|hours|days|ms|kilobytes|percent)(_|$)", name):
            said.append(f"{name}: use base units")
        if re.search(r"[A-Z:]|__", name):
            said.append(f"{name}: lower case, one underscore, no colon")
        if re.search(r"_(counter|gauge|summary|histogram|count|sum|bucket)(_|$)", name):
            said.append(f"{name}: its type is no part of its name")
    for one in samples:
        labels = dict(one.labels)
        if "quantile" in labels and kinds[one.name] != "summary":
            said.append(f"{one.name}: quantile is a label of summaries")
        if "le" in labels or any(label.startswith("__") for label in labels):
            said.append(f"{one.name}: a reserved label")
        if kinds[one.name] == "counter" and one.value < 0:
            said.append(f"{one.name}: a counter below zero")
    return said
