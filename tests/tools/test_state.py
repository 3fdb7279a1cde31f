"""State goes where it can be written; a full disk and a read-only one are told as sentences."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys

import pytest

from tools import checkout
from tools.checkout import ROOT, state_candidates, state_directory
from tools.children import environment
from tools.errors import Refusal, sentence_for, why_install_failed


@contextlib.contextmanager
def mounted(path, options):
    """Mount a small file system of its own, where this user may; else skip."""
    path.mkdir()
    argv = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)]
    if os.getuid() or subprocess.run(argv, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a file system")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def test_state_lives_in_the_checkout(tmp_path, monkeypatch):
    monkeypatch.delenv("ONCE_DEV_STATE")

    assert state_directory(tmp_path) == tmp_path / ".dev"


def test_a_read_only_checkout_keeps_its_state_in_the_users_cache(tmp_path, monkeypatch):
    monkeypatch.delenv("ONCE_DEV_STATE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with mounted(tmp_path / "checkout", "ro,size=64k") as root:
        chosen = state_directory(root)

    assert chosen.parent == tmp_path / "cache"
    assert chosen.name.startswith("django-once-")


def test_two_checkouts_never_share_a_cache(tmp_path, monkeypatch):
    monkeypatch.delenv("ONCE_DEV_STATE")

    first, second = state_candidates(tmp_path / "one"), state_candidates(tmp_path / "two")

    assert not set(first) & set(second)


def test_a_place_that_was_asked_for_has_no_substitute(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("ONCE_DEV_STATE", str(tmp_path / "file"))

    with pytest.raises(Refusal, match="ONCE_DEV_STATE"):
        state_directory()


def test_a_full_disk_is_a_sentence_and_no_traceback(tmp_path):
    with mounted(tmp_path / "full", "size=64k") as full:
        with contextlib.suppress(OSError):
            (full / "filler").write_bytes(b"x" * 100_000)
        ended = subprocess.run(
            [sys.executable, "dev.py", "lint", "--offline", "--python", sys.executable],
            cwd=ROOT,
            env=environment({"ONCE_DEV_STATE": str(full / "state")}),
            capture_output=True,
            text=True,
            check=False,
        )

    assert ended.returncode == 1
    assert "The disk is full" in ended.stderr
    assert "Traceback" not in ended.stdout + ended.stderr


def test_a_disk_that_fills_up_is_not_mistaken_for_a_read_only_one(tmp_path, monkeypatch):
    def refuse(**options):
        raise OSError(errno.ENOSPC, "No space left on device", options["dir"])

    monkeypatch.setattr(checkout.tempfile, "TemporaryFile", refuse)

    with pytest.raises(OSError, match="No space left"):
        state_directory(tmp_path)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "The disk is full"),
        (errno.EDQUOT, "quota"),
        (errno.EROFS, "read-only file system"),
        (errno.EACCES, "Permission denied"),
        (errno.EIO, "doctor"),
    ],
)
def test_errors_of_the_system_are_sentences_that_name_the_file(number, words):
    said = sentence_for(OSError(number, os.strerror(number), "/some/file"))

    assert words in said
    assert "/some/file" in said
    assert said.endswith(".")


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("OSError: [Errno 28] No space left on device", "The disk is full"),
        ("Failed to establish a new connection: [Errno 111] Connection refused", "no answer"),
        ("Temporary failure in name resolution", "Check the network"),
        ("ERROR: No matching distribution found for django==6.1.3", "lacks a pinned package"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", "hash differs"),
        ("something nobody has seen", "could not be installed"),
    ],
)
def test_a_failed_installation_is_explained(output, words):
    assert words in why_install_failed("test.lock", output)
    assert "test.lock" in why_install_failed("test.lock", output)
