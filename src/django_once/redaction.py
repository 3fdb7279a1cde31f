"""What people may be shown of a job: its arguments, result and errors without what is hidden.

`shown(job)` is the one door: the shell, the admin, the dashboard and the JSON ask it, and show
nothing of `args`, `kwargs`, `return_value`, steps or tracebacks but what it returns.

A task says itself what is hidden (`redact=`), and so does its backend (`REDACT`). What is hidden
leaves its place to a mark. Where its value turns up elsewhere, in a result or the text of an error,
it is a mark there too. A job whose task this process does not know carries a mark of its own, and
then everything is hidden: nobody here can say what was meant.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, TypeAlias, TypeVar

from django_once import compat, payload
from django_once.declare import options_of
from django_once.definitions import registry
from django_once.definitions.redaction import EVERYTHING, matches

HIDDEN: Final = "[redacted]"
MARK: Final = "redact"
# A shorter text is looked for as a word, or half of all letters would go.
SHORT: Final = 4
Rule: TypeAlias = "tuple[str, ...] | Callable[[dict[str, Any]], Mapping[str, Any]]"


# An Explanation; the rows stand below, and are not loaded here.
Explained = TypeVar("Explained", bound=Any)


@dataclass(frozen=True, slots=True)
class Shown:
    """What may be shown of one job; `text` and `value` clean what else is known of it."""

    args: Any
    kwargs: Any
    return_value: Any
    rules: tuple[Rule, ...] = ()
    secrets: re.Pattern[str] | None = field(default=None, repr=False)
    hides_all: bool = False

    def text(self, text: str) -> str:
        """Return a text, such as a traceback, without what is hidden."""
        return text if self.secrets is None else self.secrets.sub(HIDDEN, text)

    def value(self, value: Any) -> Any:
        """Return a value, such as that of a step, without what is hidden."""
        if self.hides_all and value is not None:
            return HIDDEN
        return _cleaned(value, _names(self.rules), self.secrets)


def shown(job: Any) -> Shown:
    """Return what may be shown of a job's row; columns that were not read are not asked for."""
    read = [name for name in ("args", "kwargs", "return_value") if name in vars(job)]
    values = {name: decoded(getattr(job, name)) for name in read}
    rules = rules_of(job.task, job.backend)
    if registry.find(job.task) is None and _is_marked(job):
        rules = (*rules, (EVERYTHING,))
    if not rules:
        return Shown(values.get("args"), values.get("kwargs"), values.get("return_value"))
    told = without(job.task, values.get("args", []), values.get("kwargs", {}), rules)
    return Shown(
        told.args if "args" in values else None,
        told.kwargs if "kwargs" in values else None,
        told.value(values.get("return_value")),
        told.rules, told.secrets, told.hides_all,
    )  # fmt: skip


def explained(job: Any, explanation: Explained) -> Explained:
    """Return why a job does not run without what is hidden, as in a strike of its arguments."""
    told = shown(job)
    if not told.rules:
        return explanation
    names = tuple(name for name in _names(told.rules) if name != EVERYTHING)
    findings = tuple(
        replace(one, says=told.text(one.says), evidence=_cleaned(one.evidence, names, told.secrets))
        for one in explanation.findings
    )
    return replace(explanation, says=told.text(explanation.says), findings=findings)


def arguments_shown(path: str, alias: str, arguments: dict[str, Any]) -> Any:
    """Return some arguments of a task, by their names, without what is hidden."""
    return without(path, [], arguments, rules_of(path, alias)).kwargs


def rules_of(path: str, alias: str) -> tuple[Rule, ...]:
    """Return what hides something of a task's jobs, as far as this process knows the task."""
    common, task = _of_backend(alias), registry.find(path)
    own = None if task is None else options_of(task).get("redact")
    return common if own is None else (*common, own)


def without(path: str, args: Any, kwargs: Any, rules: tuple[Rule, ...]) -> Shown:
    """Return a call of this task without what these rules hide."""
    if not rules:
        return Shown(args, kwargs, None)
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        # No task can be called so: nobody can say which argument is which.
        return Shown(HIDDEN, HIDDEN, None, rules, _secrets([args, kwargs]), hides_all=True)
    names = _places(path, len(args))
    positional, named = list(args), dict(kwargs)
    for rule in rules:
        if callable(rule):
            positional, named = _as_it_says(rule, names, positional, named)
        else:
            positional = [
                HIDDEN if not name or matches(name, rule) else _cleaned(value, rule, None)
                for name, value in zip(names, positional, strict=True)
            ]
            named = _cleaned(named, rule, None)
    kept = set(_leaves([positional, named]))
    hidden = [leaf for leaf in _leaves([args, kwargs]) if leaf not in kept]
    hides_all = any(EVERYTHING in rule for rule in rules if isinstance(rule, tuple))
    return Shown(positional, named, None, rules, _secrets(hidden), hides_all)


def _is_marked(job: Any) -> bool:
    """Return whether a job says that it has secrets; one whose mark was not read may have some."""
    if "meta" not in vars(job):
        return True
    carried = decoded(job.meta)
    return isinstance(carried, dict) and MARK in carried


def _of_backend(alias: str) -> tuple[Rule, ...]:
    try:
        backend: Any = compat.task_backends[alias]
    except compat.InvalidTaskBackend:
        return ()
    settings = getattr(backend, "settings", None)
    return getattr(settings, "redact", ())


def _places(path: str, count: int) -> list[str]:
    """Return the names of so many positional arguments; one that none takes has no name."""
    task = registry.find(path)
    names, rest = ([], "") if task is None else _positional(task.func, task.takes_context)
    return [names[n] if n < len(names) else rest for n in range(count)]


@lru_cache(maxsize=4096)
def _positional(function: Callable[..., Any], takes_context: bool) -> tuple[list[str], str]:
    parameters = list(inspect.signature(function).parameters.values())[int(takes_context) :]
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [one.name for one in parameters if one.kind in kinds]
    rest = [one.name for one in parameters if one.kind is inspect.Parameter.VAR_POSITIONAL]
    return names, rest[0] if rest else ""


def _as_it_says(
    rule: Callable[[dict[str, Any]], Mapping[str, Any]],
    names: Sequence[str], args: list[Any], kwargs: dict[str, Any],
) -> tuple[list[Any], dict[str, Any]]:  # fmt: skip
    """Return a call with what a function of the project's leaves of its arguments.

    What it leaves out is hidden; all is, where it raises.
    """
    given = {name or f"argument {n}": value for n, (name, value) in
             enumerate(zip(names, args, strict=True))} | kwargs  # fmt: skip
    for name in {name for name in names if names.count(name) > 1}:
        given[name] = [value for one, value in zip(names, args, strict=True) if one == name]
    try:
        left = dict(rule(deepcopy(given)))
    except BaseException:  # noqa: BLE001 - it is the project's, and may raise anything
        left = {}
    positional = []
    for n, name in enumerate(names):
        value = left.get(name or f"argument {n}", HIDDEN)
        if names.count(name) > 1:
            members = value if isinstance(value, list) else []
            at = n - names.index(name)
            value = members[at] if at < len(members) else HIDDEN
        positional.append(value)
    return positional, {name: left.get(name, HIDDEN) for name in kwargs}


def _cleaned(value: Any, names: tuple[str, ...], secrets: re.Pattern[str] | None) -> Any:
    """Return a value in which keys of these names, and what matches, are marks."""
    if isinstance(value, dict):
        return {
            key: HIDDEN if matches(key, names) else _cleaned(member, names, secrets)
            for key, member in value.items()
        }
    if isinstance(value, list):
        return [_cleaned(member, names, secrets) for member in value]
    if secrets is None or value is None or isinstance(value, bool):
        return value
    text = value if isinstance(value, str) else str(value)
    found = secrets.sub(HIDDEN, text)
    return value if found == text else found


def _names(rules: Iterable[Rule]) -> tuple[str, ...]:
    return tuple(name for rule in rules if isinstance(rule, tuple) for name in rule)


def _leaves(value: Any) -> Iterator[str | float]:
    if isinstance(value, dict):
        for member in value.values():
            yield from _leaves(member)
    elif isinstance(value, list):
        for member in value:
            yield from _leaves(member)
    elif isinstance(value, (str, int, float)) and not isinstance(value, bool):
        yield value


def _secrets(values: Iterable[Any]) -> re.Pattern[str] | None:
    """Return what finds these values in a text, however they are written there."""
    words: set[str] = set()
    for leaf in _leaves(list(values)):
        if not isinstance(leaf, str):
            words.add(repr(leaf))
        elif leaf.strip():
            words |= {leaf, leaf.strip(), repr(leaf)[1:-1], json.dumps(leaf)[1:-1]}
            words.add(json.dumps(leaf, ensure_ascii=False)[1:-1])
    if not words:
        return None
    longest_first = sorted(words, key=lambda word: (-len(word), word))
    return re.compile("|".join(map(_looked_for, longest_first)))


def _looked_for(word: str) -> str:
    is_long = len(word) >= SHORT and not word.replace(".", "").replace("-", "").isdigit()
    return re.escape(word) if is_long else rf"(?<![\w]){re.escape(word)}(?![\w])"


def decoded(text: str | None) -> Any:
    """Return the value of a JSON column, or the text, where SQL put no JSON there."""
    if text is None:
        return None
    try:
        return payload.decode(text)
    except ValueError:
        return text
