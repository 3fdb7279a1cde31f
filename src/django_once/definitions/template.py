"""Names with places for arguments: "tenant:{tenant_id}" becomes the name of one tenant.

A template is checked against the function when the task is declared, so that a name which asks for
an argument that nobody gives fails at import and not at the first enqueue.
"""

from __future__ import annotations

import inspect
import re
import string
from collections.abc import Callable, Mapping
from typing import Any, Final

from django_once.errors import InvalidOption, shortened

LONGEST: Final = 160
# What JSON writes as a plain word: everything else has no one text that names it.
PLAIN: Final = (str, int, float, bool, type(None))


def checked(template: object, option: str) -> str:
    """Return a template that can be read; refuse what is no text, too long or malformed."""
    if not isinstance(template, str) or not 1 <= len(template) <= LONGEST:
        raise InvalidOption(
            f"{option} must be a name of 1 to {LONGEST} characters such as 'tenant:{{tenant_id}}', "
            f"got {shortened(template)}."
        )
    try:
        places = _places(template)
    except ValueError as error:
        raise InvalidOption(f"{option}={template!r} cannot be read: {error}.") from None
    for place in places:
        if not re.match(r"[^\W\d]\w*(?![^.\[])", place):
            raise InvalidOption(
                f"{option}={template!r} must name its arguments, such as {{tenant_id}}: "
                f"{{{place}}} names none."
            )
    return template


def refuse_unnamed(template: str, function: Callable[..., Any], option: str) -> None:
    """Refuse a template that asks for an argument which the function does not have."""
    known = inspect.signature(function).parameters
    for place in _places(template):
        if _argument(place) not in known:
            raise InvalidOption(
                f"{option}={template!r} asks for {place!r}, which {function.__qualname__} does not "
                f"take. Its arguments: {', '.join(known)}."
            )


def filled(template: str, arguments: Mapping[str, Any], option: str) -> str:
    """Return the name with the values of a call in its places."""
    if "{" not in template and "}" not in template:
        return template
    formatter = string.Formatter()
    for place in _places(template):
        try:
            value, _ = formatter.get_field(place, (), arguments)
        except (KeyError, IndexError, AttributeError, TypeError) as error:
            raise InvalidOption(
                f"{option}={template!r} asks for {place!r}, which this call does not have: "
                f"{type(error).__name__} {error}."
            ) from None
        if not isinstance(value, PLAIN):
            raise InvalidOption(
                f"{option}={template!r}: {place!r} is {shortened(value)}, which names nothing. Use "
                "an argument that is text or a number."
            )
    try:
        name = template.format_map(arguments)
    except (ValueError, TypeError) as error:
        raise InvalidOption(f"{option}={template!r} could not be filled: {error}.") from None
    if not 1 <= len(name) <= LONGEST:
        raise InvalidOption(
            f"{option}={template!r} became a name of {len(name)} characters; there is room for "
            f"{LONGEST}."
        )
    return name


def literal(name: str) -> str:
    """Return the template that becomes this very name."""
    return name.replace("{", "{{").replace("}", "}}")


def _places(template: str) -> list[str]:
    return [place for _, place, _, _ in string.Formatter().parse(template) if place is not None]


def _argument(place: str) -> str:
    return re.split(r"[.\[]", place)[0]
