"""What dev.py cannot do, as sentences: what happened, to which thing, what to do."""

from __future__ import annotations

import errno

MISSING_MODULES = {
    "ensurepip": "apt-get install python{version}-venv",
    "venv": "apt-get install python{version}-venv",
    "sqlite3": "apt-get install libsqlite3-0, or rebuild Python with the SQLite headers present",
    "ssl": "apt-get install libssl3, or rebuild Python with the OpenSSL headers present",
}

NO_NETWORK_SIGNS = (
    "Temporary failure in name resolution",
    "Name or service not known",
    "nodename nor servname provided",
    "Network is unreachable",
    "Connection refused",
    "Failed to establish a new connection",
    "NewConnectionError",
    "ConnectTimeout",
    "Read timed out",
    "Cannot connect to proxy",
    "dns error",
    "error sending request",
    "Could not resolve",
    "Failed to fetch",
)

NO_SPACE = "No space left on device"


class Refusal(Exception):
    """Something that a person must see to; its text is written for them."""


def sentence_for(error: OSError) -> str:
    """Return what an error of the operating system means for the person at the keyboard."""
    place = error.filename or "a file"
    if error.errno == errno.ENOSPC:
        return disk_is_full(place)
    if error.errno == errno.EDQUOT:
        return (
            "The disk quota is used up: %r could not be written. Free some, "
            "then run the command again." % place
        )
    if error.errno == errno.EROFS:
        return (
            "%r is on a read-only file system. Set ONCE_DEV_STATE to a writable directory." % place
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return (
            "Permission denied on %r. Change its owner, or set ONCE_DEV_STATE "
            "to a directory of yours." % place
        )
    return "%s (%r). 'python3 dev.py doctor' shows what dev.py sees." % (
        error.strerror or error,
        place,
    )


def disk_is_full(place: object) -> str:
    return (
        "The disk is full: %s could not be written. Free about 1 GB, or set ONCE_DEV_STATE "
        "to a directory on another disk, then run the command again." % (place,)
    )


def remedy_for_missing(module: str, version: str) -> str:
    """Return what to install where an interpreter of that version cannot import this module."""
    return MISSING_MODULES.get(module, "install a complete Python").format(version=version)


def why_install_failed(lock: str, output: str) -> str:
    """Return one sentence for a package installer that gave up, from what it printed."""
    if NO_SPACE in output:
        return disk_is_full("the packages of " + lock)
    last_lines = "\n".join("    " + line for line in output.strip().splitlines()[-6:])
    if any(sign in output for sign in NO_NETWORK_SIGNS):
        return (
            "The packages of %s could not be fetched: the package index gave no answer. Check the "
            "network, the proxy variables and 'pip config list', then run the command again. "
            "The last lines were:\n%s" % (lock, last_lines)
        )
    if "THESE PACKAGES DO NOT MATCH THE HASHES" in output or "Hash mismatch" in output:
        return (
            "A package of %s is not the one that was locked: its hash differs. Do not use that "
            "index before it is known why. The last lines were:\n%s" % (lock, last_lines)
        )
    if "No matching distribution found" in output or "no wheels with a matching" in output:
        return (
            "The package index lacks a pinned package of %s for this Python and platform. "
            "The last lines were:\n%s" % (lock, last_lines)
        )
    return "The packages of %s could not be installed. The last lines were:\n%s" % (
        lock,
        last_lines,
    )
