"""The house: rules of the design and of the style that no linter knows."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "django_once"
FILES = {str(path.relative_to(PACKAGE)): path.read_text() for path in PACKAGE.rglob("*.py")}
# Migrations are written by Django, and an empty file only makes a folder a package.
OWN = sorted(name for name in FILES if FILES[name] and not name.startswith("migrations/"))
TREES = {name: ast.parse(FILES[name]) for name in OWN}
FRONT = re.compile(r"(backend|calls|channels|context|declare|locks|locks/\w+|once|results)\.py")

MOST_LINES, MOST_LINES_OF_A_FUNCTION = 400, 50
# What the vocabulary says otherwise, and what says nothing. A supervisor does reap its children.
BANNED = re.compile(
    r"(^|_)(submit(ted)?|ack(ed)?|tokens?|epoch|stale|ttl|mutex|reaper|rescued?|occurrences?"
    r"|invocation|topics?|job_type|att|idx|obj|data|info|handles?|impl|utils?|mixin|managers?"
    r"|services?|repository)(_|$)|^_?do_"
)
# Rows are asked for where they live; these look at one, or show them.
MAY_QUERY = re.compile(r"models/|admin|testing\.py|backend\.py|processes/runner\.py|dashboard/")
# Partial indexes are no words of Django's, and NOTIFY is the wire of one database.
MAY_SAY_SQL = re.compile(r"sql/|models/fields\.py|wakeups/")
SQL = re.compile(
    r"\s*(SELECT\s|INSERT\s+INTO\s|UPDATE\s+\w+\s|DELETE\s+FROM\s|WITH\s+(RECURSIVE\s+)?\w+\s+AS\s"
    r"|PRAGMA\s+\w+|SHOW\s+\w+|SET\s+\w+|(LISTEN|NOTIFY)\s+\w*\s*$|(CREATE|ALTER|DROP)\s+[A-Z]+\s)"
)


def bound(tree: ast.AST) -> list[str]:
    """Return every name that a file gives to something, with its line in front."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.append(f"{node.lineno} {node.name}")
        elif isinstance(node, ast.arg):
            found.append(f"{node.lineno} {node.arg}")
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.append(f"{node.lineno} {getattr(node, 'id', None) or node.attr}")
    return found


def is_banned(name: str) -> bool:
    return bool(BANNED.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()))


def long_functions(tree: ast.AST) -> list[str]:
    functions = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    lengths = {function.name: function.end_lineno - function.lineno for function in functions}
    return [name for name, length in lengths.items() if length >= MOST_LINES_OF_A_FUNCTION]


def statements(tree: ast.AST) -> list[str]:
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return [text for text in texts if isinstance(text, str) and SQL.match(text)]


def queries(tree: ast.AST) -> list[int]:
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return [node.lineno for node in attributes if node.attr in ("objects", "_default_manager")]


@pytest.mark.parametrize("name", OWN)
def test_a_file_is_one_noun_and_says_first_what_lives_in_it(name):
    docstring = ast.get_docstring(TREES[name]) or ""

    assert re.match(r"\S[^\n]*(\n[^\n]+)*[.:]", docstring), "A file begins with a sentence."
    assert len(FILES[name].splitlines()) <= MOST_LINES
    assert not is_banned(Path(name).stem)


@pytest.mark.parametrize("name", OWN)
def test_a_function_does_one_thing_and_a_concept_has_one_word(name):
    assert long_functions(TREES[name]) == []
    said = [line for line in bound(TREES[name]) if is_banned(line.split()[1])]
    # A command of Django's is asked by this name.
    assert [
        line for line in said if not (name.startswith("management/") and "handle" in line)
    ] == []


@pytest.mark.parametrize("name", OWN)
def test_rows_are_asked_for_and_statements_stand_where_they_live(name):
    assert MAY_QUERY.match(name) or queries(TREES[name]) == []
    assert MAY_SAY_SQL.match(name) or statements(TREES[name]) == []


@pytest.mark.parametrize("name", [name for name in OWN if FRONT.fullmatch(name)])
def test_the_front_loads_no_model(name):
    loaded = [node for node in TREES[name].body if isinstance(node, ast.ImportFrom | ast.Import)]

    assert "django_once.models" not in " ".join(map(ast.unparse, loaded))


def test_each_rule_would_find_its_breach():
    breach = ast.parse(
        "def handle(data): Job.objects.get()\n"
        "class JobManager: sql, said = 'UPDATE once_job SET x', 'Update it.'"
    )

    assert list(filter(is_banned, [line.split()[1] for line in bound(breach)])) == [
        "handle", "JobManager", "data",
    ]  # fmt: skip
    assert (statements(breach), len(queries(breach))) == (["UPDATE once_job SET x"], 1)
    assert long_functions(ast.parse("def f():" + "\n 1" * 50)) == ["f"]
