"""A round of tests: the environments made, the servers found, the targets chosen from both."""

from __future__ import annotations

import os
import secrets
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Sequence

from tools.checkout import state_directory
from tools.environments import Environment, ready_environment
from tools.errors import Refusal
from tools.interpreters import Discovery, describe, discover
from tools.progress import Step, sign
from tools.runs import Ended, run_all
from tools.servers.harness import Harness
from tools.servers.kinds import KINDS
from tools.servers.ledger import PREFIX, remove_place
from tools.servers.search import Search
from tools.servers.server import Missing, Server
from tools.targets import (
    MIDDLE,
    OLDEST,
    ON_OLDEST,
    ON_UPSTREAM,
    UPSTREAM,
    Means,
    NotTested,
    Target,
    all_targets,
    chosen,
    quick_targets,
)
from tools.upstream import fetched, pinned


@dataclass(frozen=True)
class Wish:
    """What the person at the keyboard asked for."""

    only: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    python: str = ""
    is_quick: bool = False
    is_offline: bool = False
    allows_remote: bool = False

    def touches(self, names: set[str]) -> bool:
        """Say whether any target of these names is wanted."""
        return not self.is_quick and (not self.only or bool(names & set(self.only)))


@dataclass
class Round:
    """What runs, what cannot, and where it runs."""

    search: Search
    targets: list[Target]
    not_tested: list[NotTested]
    redis: Server | None
    token: str = field(default_factory=lambda: secrets.token_hex(4))
    place: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix=PREFIX)))

    def run(self, arguments: Sequence[str]) -> list[Ended]:
        """Run every target and return how each ended."""
        page = self.search.harness.ledger.record(os.getpid(), self.place)
        try:
            return run_all(self.targets, self.variables, arguments, self.tidy)
        finally:
            remove_place(str(self.place))
            page.unlink()

    def variables(self, target: Target) -> dict[str, str]:
        """Return what a target's tests are told through their environment."""
        directory = self.place / target.slug
        directory.mkdir(exist_ok=True)
        url = "sqlite://%s" % (directory / "once.sqlite3")
        if target.server is not None and target.server.kind != "redis":
            url = target.server.address.url
        variables = {
            "ONCE_TEST_DATABASE_URL": url,
            "ONCE_TEST_TOKEN": self.token_of(target),
            "ONCE_TEST_TARGET": target.name,
            "HYPOTHESIS_STORAGE_DIRECTORY": str(state_directory() / "hypothesis"),
        }
        if self.redis is not None:
            variables["ONCE_TEST_REDIS_URL"] = self.redis.address.url
        return variables

    def tidy(self, target: Target) -> None:
        """Drop the databases that a killed target has left on a server that is not ours."""
        server = target.server
        if server is not None and not server.is_ours and server.kind != "redis":
            self.search.drop(server, "test_once_" + self.token_of(target))

    def token_of(self, target: Target) -> str:
        return "%s_%d" % (self.token, self.targets.index(target))


def prepared(wish: Wish, harness: Harness) -> Round:
    """Return a round with its environments made and its servers found."""
    with Step("looking for Pythons") as step:
        found = discover(wish.python or None)
        step.note = describe(found.usable)
    newest = ready_environment("test", found.newest(), wish.is_offline)
    search = Search(newest.python, newest.interpreter, harness, wish.is_offline, wish.allows_remote)
    servers = {kind: find(kind, search) for kind in kinds_wanted(wish)}
    means = Means(
        newest,
        oldest_environment(found, newest, wish),
        middle_environment(found, wish),
        servers,
        wish.python,
        sources_missing(newest, wish),
    )
    every = quick_targets(means) if wish.is_quick else chosen(all_targets(means), wish.only)
    redis = servers.get("redis")
    return Round(
        search,
        [one for one in every if isinstance(one, Target)],
        [one for one in every if isinstance(one, NotTested)],
        redis if isinstance(redis, Server) else None,
    )


def kinds_wanted(wish: Wish) -> list[str]:
    """Return the kinds of servers that the wanted targets need."""
    if wish.is_quick:
        return []
    on_both = bool({OLDEST, UPSTREAM} & set(wish.only))
    wanted = set(wish.only) | ({"postgresql", "mariadb"} if on_both else set())
    if wish.only and not wanted & (set(KINDS) | {"sqlite"}):
        return []
    return [kind for kind in KINDS if not wish.only or kind in wanted or kind == "redis"]


def find(kind: str, search: Search) -> Server | Missing:
    with Step("server for " + kind) as step:
        found = search.find(KINDS[kind])
        if isinstance(found, Server):
            where = "" if found.is_ours else " at " + found.address.shown
            step.note = "%s, %s%s" % (found.title, found.origin, where)
        else:
            step.mark, step.note = sign("–", "-"), "none; the closing table says why"
    return found


def oldest_environment(found: Discovery, newest: Environment, wish: Wish) -> Environment | None:
    """Return the environment with the oldest Django, which the lock gives to Python 3.11."""
    usable = found.in_series((3, 11), (3, 11))
    is_wanted = wish.touches({OLDEST, UPSTREAM, *ON_OLDEST})
    if not usable or not is_wanted or newest.interpreter.series == (3, 11):
        return None
    return ready_environment("test", usable[0], wish.is_offline)


def middle_environment(found: Discovery, wish: Wish) -> Environment | None:
    usable = found.in_series((3, 12), (3, 14))
    if not usable or not wish.touches({MIDDLE, UPSTREAM, *ON_UPSTREAM}):
        return None
    return ready_environment("test-django60", usable[0], wish.is_offline)


def sources_missing(newest: Environment, wish: Wish) -> str:
    """Fetch the sources of Django's own tests; return why they cannot be had, if they cannot."""
    if not wish.touches({UPSTREAM, *ON_UPSTREAM}):
        return ""
    with Step("sources of Django's own tests") as step:
        try:
            paths = [fetched(one, newest.python, wish.is_offline) for one in pinned()]
        except Refusal as refusal:
            step.mark, step.note = sign("–", "-"), "none; the closing table says why"
            return str(refusal)
        step.note = ", ".join(path.name for path in paths)
    return ""
