"""The locks fit what is asked for, and name no place."""

from __future__ import annotations

import pytest

from tools.checkout import REQUIREMENTS
from tools.locks import complaints, meets, read_pins


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "all.in").write_text("-r base.in\nseven[extra]>=7.1,<8  # why\n")
    (tmp_path / "base.in").write_text('# A comment.\nOne_Thing>=1 ; python_version >= "3.12"\n')
    (tmp_path / "all.lock").write_text(
        "one-thing==1.0 ; python_full_version >= '3.12' \\\n    --hash=sha256:aa\n"
        "seven==7.10 \\\n    --hash=sha256:bb \\\n    --hash=sha256:cc\n"
    )
    return tmp_path


def test_the_locks_of_this_checkout_are_in_order():
    assert complaints() == []
    assert len(list(REQUIREMENTS.glob("*.lock"))) >= 5


def test_a_good_lock_is_read_whole(directory):
    pins = read_pins(directory / "all.lock")

    assert [(pin.name, pin.version, pin.hashes) for pin in pins] == [
        ("one-thing", "1.0", 1),
        ("seven", "7.10", 2),
    ]
    assert complaints(directory) == []


def test_a_wish_that_no_pin_meets_is_told(directory):
    (directory / "base.in").write_text("one-thing>=1.1\n")

    assert complaints(directory) == ["all.in asks for one-thing>=1.1, and all.lock pins 1.0."]


def test_a_wish_without_a_pin_is_told(directory):
    (directory / "base.in").write_text("another\n")

    assert complaints(directory) == ["all.in asks for another, and all.lock pins nothing."]


def test_a_pin_without_a_hash_is_told(directory):
    with (directory / "all.lock").open("a") as lock:
        lock.write("bare==1\n")

    assert complaints(directory) == ["all.lock pins bare without a hash."]


@pytest.mark.parametrize(
    "line",
    [
        "--index-url https://packages.example/simple",
        "--find-links wheels",
        "one-thing @ file:wheels/one.whl",
        "# made with pip-compile /home/somebody/checkout/all.in",
    ],
)
def test_a_lock_that_names_a_place_is_told(directory, line):
    with (directory / "all.lock").open("a") as lock:
        lock.write(line + "\n")

    assert any("names a place" in complaint for complaint in complaints(directory))


@pytest.mark.parametrize(
    ("version", "bound", "expected"),
    [
        ("6.1.3", "<6.2", True),
        ("6.2", "<6.2", False),
        ("7.10", ">=7.9", True),
        ("5.2", "==5.2.0", True),
        ("5.2", "~=5.2", False),
    ],
)
def test_versions_compare_by_number(version, bound, expected):
    assert meets(version, bound) is expected
