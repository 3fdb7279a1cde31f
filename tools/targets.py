"""Targets: what `dev.py test` runs, each a pytest process of its own, or why one cannot be run.

A target is a server under a combination of Python and Django, with the kinds of
tests that belong there (tools/pytest_target.py). One function per family: a new
family is a new function, and a line in `all_targets`. What pytest cannot run names
a program: so do Django's own tests of the task contract (tests/upstream).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import List, Sequence, Union

from tools.environments import Environment
from tools.servers.server import Missing, Server

DATABASES = ("sqlite", "postgresql", "mariadb", "mysql")
OLDEST, MIDDLE, NEWEST = "django-5.2", "django-6.0", "django-6.1"
ON_OLDEST = ("sqlite", "postgresql", "mariadb")
UPSTREAM = "upstream"
ON_UPSTREAM = ("sqlite", "postgresql", "mariadb")
PGPUBSUB = "pgpubsub"
NAMES = (*DATABASES, "redis", "tools", NEWEST, MIDDLE, OLDEST, UPSTREAM)

PACKAGE = ("tests", "--ignore=tests/upstream", "--ignore=tests/tools")
# These ask the database, and every database is asked with the newest Django.
ROOMS = ("channels", "dashboard", "flow", "locks", "operate", "races", "series", "sql", "survival")
FRONT = (*PACKAGE, *("--ignore=tests/%s" % room for room in ROOMS))
TOOLS = ("tests/tools", "tests/chaos")


@dataclass(frozen=True)
class Target:
    """One pytest process: which tests, on what."""

    name: str
    group: str
    environment: Environment
    kinds: tuple[str, ...]
    server: Server | None = None
    tests: tuple[str, ...] = PACKAGE
    program: tuple[str, ...] = ()  # arguments of Python; it gets --junitxml=PATH
    suite: str = ""  # whose tests they are, where they are not ours

    @property
    def python_and_django(self) -> str:
        version = self.environment.version_of("django")
        return "%s · %s" % (self.environment.interpreter.version_text, version)

    @property
    def slug(self) -> str:
        return "-".join(part for part in (self.name, self.group, self.suite) if part)

    @property
    def title(self) -> str:
        return "%s, %s" % (self.name, self.group) if self.suite else self.name


@dataclass(frozen=True)
class NotTested:
    """A target that cannot be run here, with the reason and the remedy."""

    name: str
    group: str
    reason: str
    remedy: str
    databases: tuple[str, ...] = ()  # where it would have been tested


@dataclass(frozen=True)
class Means:
    """What there is to test with; an environment is missing where no Python fits."""

    newest: Environment
    oldest: Environment | None
    middle: Environment | None
    servers: dict[str, Server | Missing]
    only_python: str = ""  # the one that was asked for, if one was
    sources_missing: str = ""  # why the tests of others cannot be had, if they cannot


Targets = List[Union[Target, NotTested]]


def all_targets(means: Means) -> Targets:
    """Return every target."""
    every = [
        *newest_targets(means),
        *oldest_targets(means),
        *middle_targets(means),
        *redis_targets(means),
        *tools_targets(means),
        *upstream_targets(means),
    ]
    return with_plain_tests(every)


def quick_targets(means: Means) -> Targets:
    """Return one combination on one database, of the newest Django that a Python here can have."""
    return with_plain_tests([one for one in newest_targets(means) if isinstance(one, Target)][:1])


def newest_targets(means: Means) -> Targets:
    """Return the newest Django on every database."""
    is_newest = means.newest.interpreter.series >= (3, 12)
    group = NEWEST if is_newest else OLDEST
    targets: Targets = []
    if not is_newest:
        targets.append(without_python(NEWEST, "3.12 or newer", means, DATABASES))
    for name in DATABASES:
        targets.append(on_database(name, group, means.newest, means))
    return targets


def oldest_targets(means: Means) -> Targets:
    """Return the oldest Django, with its backport, on the databases that were found.

    All is asked on one of them, which needs no server; the others have enough to do.
    """
    if means.newest.interpreter.series < (3, 12):
        return []
    if means.oldest is None:
        return [without_python(OLDEST, "3.11", means, (*ON_OLDEST, UPSTREAM))]
    targets = [on_database(name, OLDEST, means.oldest, means) for name in ON_OLDEST]
    found = [one for one in targets if isinstance(one, Target)]
    return [one if one.name == "sqlite" else replace(one, tests=FRONT) for one in found]


def middle_targets(means: Means) -> Targets:
    """Return the Django whose @task forwards no options, on one database."""
    if means.middle is None:
        return [without_python(MIDDLE, "3.12 or newer", means, (*ON_UPSTREAM, UPSTREAM))]
    one = on_database("sqlite", MIDDLE, means.middle, means)
    return [replace(one, tests=FRONT) if isinstance(one, Target) else one]


def redis_targets(means: Means) -> Targets:
    return [on_server("redis", NEWEST, means.newest, means, ("redis",))]


def tools_targets(means: Means) -> Targets:
    return [Target("tools", NEWEST, means.newest, ("tools",), tests=TOOLS)]


def upstream_targets(means: Means) -> Targets:
    """Return Django's own tests of the contract, on every Django and the databases found.

    And those of django-periodic-tasks and django-pgpubsub, on the newest; the latter know only
    PostgreSQL. Where a Python is lacking, the row of its Django says so.
    """
    if means.sources_missing:
        remedy = "run it once where pip finds packages: the sources are kept"
        return [NotTested(UPSTREAM, UPSTREAM, means.sources_missing, remedy, ON_UPSTREAM)]
    is_newest = means.newest.interpreter.series >= (3, 12)
    suites = (
        ("django-6.1", means.newest if is_newest else None),
        ("django-6.0", means.middle),
        ("backport", means.oldest if is_newest else means.newest),
        ("periodic-tasks", means.newest),
        (PGPUBSUB, means.newest),
    )
    found = [
        with_suite(on_database(name, UPSTREAM, environment, means), suite)
        for suite, environment in suites
        if environment is not None
        for name in (("postgresql",) if suite == PGPUBSUB else ON_UPSTREAM)
    ]
    return [one for one in found if isinstance(one, Target)]


def with_suite(one: Target | NotTested, suite: str) -> Target | NotTested:
    """Return a target so that it runs the tests of others in place of ours."""
    if isinstance(one, NotTested):
        return one
    program = ("-m", "tests.upstream", "--suite", suite)
    return replace(one, kinds=(), tests=(), program=program, suite=suite)


def on_database(
    name: str, group: str, environment: Environment, means: Means
) -> Target | NotTested:
    kinds: tuple[str, ...] = ("engine",)
    if environment is means.newest:
        is_slow = name == place_of_slow_tests(means)
        kinds = ("engine", "processes", "slow") if is_slow else ("engine", "processes")
    if name == "sqlite":
        return Target(name, group, environment, kinds)
    return on_server(name, group, environment, means, kinds)


def place_of_slow_tests(means: Means) -> str:
    """Return the database on which the tests run that take seconds: once is enough for them."""
    found = isinstance(means.servers.get("postgresql"), Server)
    return "postgresql" if found else "sqlite"


def on_server(
    name: str, group: str, environment: Environment, means: Means, kinds: tuple[str, ...]
) -> Target | NotTested:
    server = means.servers.get(name)
    if isinstance(server, Server):
        return Target(name, group, environment, kinds, server)
    if server is None:
        return NotTested(name, group, "no server was looked for", "leave out --only")
    return NotTested(name, group, server.reason, server.remedy)


def without_python(
    group: str, versions: str, means: Means, databases: tuple[str, ...]
) -> NotTested:
    if means.only_python:
        reason = "--python chose %s, and this needs Python %s" % (means.only_python, versions)
        return NotTested(group, group, reason, "leave out --python", databases)
    reason = "this needs Python %s, and none that works was found" % versions
    remedy = "install Python %s; dev.py doctor lists all that are here" % versions
    return NotTested(group, group, reason, remedy, databases)


def chosen(targets: Sequence[Target | NotTested], names: Sequence[str]) -> Targets:
    """Return the targets of these names, on every Django, and all when none is named."""
    if not names:
        return list(targets)
    kept = [one for one in targets if set(names) & names_of(one)]
    return with_plain_tests(kept)


def names_of(one: Target | NotTested) -> set[str]:
    """Return the names by which --only chooses a target."""
    return {one.name, one.group, *(one.databases if isinstance(one, NotTested) else ())}


def with_plain_tests(targets: Sequence[Target | NotTested]) -> Targets:
    """Return the targets so that the tests that need no database run once for each Django."""
    taken: set[str] = set()
    changed: Targets = []
    for one in targets:
        if isinstance(one, Target) and "engine" in one.kinds and one.group not in taken:
            taken.add(one.group)
            changed.append(replace(one, kinds=("plain", *one.kinds)))
        else:
            changed.append(one)
    return changed
