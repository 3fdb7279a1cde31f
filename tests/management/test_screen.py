"""How a table fits into a terminal."""

from __future__ import annotations

import pytest

from django_once.management.screen import GAP, NARROWEST, Column, fitted, length

COLUMNS = [Column("ID"), Column("TASK", is_cut=True), Column("QUEUE", spare=1),
           Column("WORKER", is_cut=True, spare=2)]  # fmt: skip
WIDTHS = [36, 60, 10, 30]


def width(widths: list[int]) -> int:
    shown = [one for one in widths if one]
    return sum(shown) + len(GAP) * (len(shown) - 1)


def test_what_fits_is_left_as_it_is():
    assert fitted(COLUMNS, WIDTHS, 142) == WIDTHS


@pytest.mark.parametrize("most", range(54, 142))
def test_a_line_fits_into_the_terminal(most):
    widths = fitted(COLUMNS, WIDTHS, most)

    assert width(widths) <= most
    assert (widths[0], widths[1] >= NARROWEST) == (36, True)


def test_texts_lose_their_beginnings_before_columns_go_and_the_most_spare_goes_first():
    assert fitted(COLUMNS, WIDTHS, 141) == [36, 59, 10, 30]
    assert fitted(COLUMNS, WIDTHS, 84) == [36, 16, 10, 16]
    assert fitted(COLUMNS, WIDTHS, 83) == [36, 33, 10, 0]
    assert fitted(COLUMNS, WIDTHS, 60) == [36, 22, 0, 0]


def test_what_cannot_fit_keeps_what_cannot_be_spared():
    assert fitted(COLUMNS, WIDTHS, 10) == [36, 16, 0, 0]


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.0, "0.0 s"), (9.94, "9.9 s"), (42, "42 s"), (60, "1 m"), (7199, "1 h"), (86400, "1 d")],
)
def test_a_span_is_told_as_people_say_it(seconds, told):
    assert length(seconds) == told
