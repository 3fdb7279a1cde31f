"""What the tests of the tools share: a state directory of their own, and little wheels."""

from __future__ import annotations

import base64
import hashlib
import sys
import zipfile
from pathlib import Path

import pytest

from tools.interpreters import Interpreter

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.tools)


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    """Return a state directory that is nobody else's."""
    directory = tmp_path / "state"
    monkeypatch.setenv("ONCE_DEV_STATE", str(directory))
    for name in ("DATABASE_URL", "REDIS_URL", "ONCE_TEST_REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    return directory


@pytest.fixture
def this_python():
    return Interpreter(sys.executable, sys.version_info[:3])


@pytest.fixture
def index(tmp_path, monkeypatch):
    """Return a directory of wheels that is all pip can fetch from."""
    directory = tmp_path / "wheels"
    directory.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(directory))
    return directory


@pytest.fixture
def requirements(tmp_path, monkeypatch):
    """Return a directory of locks that stands in for that of the checkout."""
    directory = tmp_path / "requirements"
    directory.mkdir()
    monkeypatch.setattr("tools.environments.REQUIREMENTS", directory)
    return directory


def make_wheel(directory: Path, name: str, version: str) -> str:
    """Make a wheel with one module in it, and return its hash."""
    stem = f"{name}-{version}"
    files = {
        f"{name}.py": f"VERSION = {version!r}\n",
        f"{stem}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{stem}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},sha256={digest(text)},{len(text)}\n" for path, text in files.items())
    files[f"{stem}.dist-info/RECORD"] = f"{record}{stem}.dist-info/RECORD,,\n"
    path = directory / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name_in_wheel, text in files.items():
            wheel.writestr(name_in_wheel, text)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def digest(text: str) -> str:
    raw = hashlib.sha256(text.encode()).digest()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def write_lock(directory: Path, name: str, **pins: tuple[str, str]) -> None:
    """Write a lock that pins each package at a version with a hash."""
    lines = [
        f"{package}=={version} \\\n    --hash=sha256:{sha}\n"
        for package, (version, sha) in pins.items()
    ]
    (directory / f"{name}.lock").write_text("".join(lines))
