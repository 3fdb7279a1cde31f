"""As much of JSON Schema as ours say, and one thing more: a key that no schema names is refused."""

from __future__ import annotations

import re
from typing import Any

KINDS: dict[str, Any] = {
    "string": str, "integer": int, "number": (int, float), "boolean": bool, "object": dict,
    "array": list, "null": type(None),
}  # fmt: skip
KNOWN = {
    "$schema", "$id", "title", "description", "type", "properties", "required", "items", "enum",
    "pattern", "minimum", "additionalProperties",
}  # fmt: skip


def violations(value: Any, schema: dict[str, Any], place: str = "$") -> list[str]:  # noqa: C901
    """Return what of a value is not as its schema says."""
    assert set(schema) <= KNOWN, f"This validator does not know {set(schema) - KNOWN}."
    found = []
    kinds = schema.get("type")
    if kinds is not None and not any(is_of(value, kind) for kind in as_list(kinds)):
        return [f"{place} is {value!r}, which is no {kinds}"]
    if value is None:
        return []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{place} is {value!r}, not one of {schema['enum']}")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{place} is {value!r}, not like {schema['pattern']}")
    if "minimum" in schema and value < schema["minimum"]:
        found.append(f"{place} is {value!r}, less than {schema['minimum']}")
    if isinstance(value, list):
        for n, member in enumerate(value):
            found += violations(member, schema.get("items", {}), f"{place}[{n}]")
    if isinstance(value, dict) and "properties" in schema:
        known = schema["properties"]
        found += [f"{place} has no {name}" for name in schema["required"] if name not in value]
        found += [f"{place}.{name} is in no schema" for name in value if name not in known]
        for name in set(known) & set(value):
            found += violations(value[name], known[name], f"{place}.{name}")
    elif isinstance(value, dict) and "additionalProperties" in schema:
        for name, member in value.items():
            found += violations(member, schema["additionalProperties"], f"{place}.{name}")
    return found


def is_of(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, KINDS[kind])


def as_list(kinds: Any) -> list[str]:
    return kinds if isinstance(kinds, list) else [kinds]
