"""All kinds of work, by name: the task, and how often it is drawn.

A new kind is a file beside this one with its `KINDS`, and its name in `MODULES`. What is not
ordered, but goes on by itself, is in `STANDING`: it is begun, and stirred from time to time.
"""

from __future__ import annotations

from chaos.project.work import clockwork, exactly, least, locked, most, poison, series

MODULES = (exactly, least, most, locked, poison)
KINDS = {name: kind for module in MODULES for name, kind in module.KINDS.items()}
STANDING = (series,)
# Fires by itself wherever a scheduler is.
SCHEDULED = (clockwork,)
