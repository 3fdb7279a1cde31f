"""Django's task contract: Django's own from 6.0 on, else its backport; decided here, once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import django
from django.core.exceptions import ImproperlyConfigured

# Types are those of Django's own contract; the backport's are alike.
if TYPE_CHECKING or django.VERSION >= (6, 0):
    from django.tasks import task_backends
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import (
        DEFAULT_TASK_BACKEND_ALIAS,
        DEFAULT_TASK_PRIORITY,
        DEFAULT_TASK_QUEUE_NAME,
        TASK_MAX_PRIORITY,
        TASK_MIN_PRIORITY,
        TASK_REFRESH_ATTRS,
        Task,
        TaskContext,
        TaskError,
        TaskResult,
        TaskResultStatus,
    )
    from django.tasks.exceptions import (
        InvalidTask,
        InvalidTaskBackend,
        TaskResultDoesNotExist,
        TaskResultMismatch,
    )
    from django.tasks.signals import task_enqueued, task_finished, task_started

    LOGGER = "django.tasks"
else:
    try:
        import django_tasks
    except ImportError as error:
        raise ImproperlyConfigured(
            "Django below 6.0 has no django.tasks: install its backport with "
            "'pip install \"django-once[backport]\"'."
        ) from error
    from django_tasks import exceptions, task_backends
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.base import (
        DEFAULT_TASK_BACKEND_ALIAS,
        DEFAULT_TASK_PRIORITY,
        DEFAULT_TASK_QUEUE_NAME,
        TASK_MAX_PRIORITY,
        TASK_MIN_PRIORITY,
        TASK_REFRESH_ATTRS,
        Task,
        TaskContext,
        TaskError,
        TaskResult,
        TaskResultStatus,
    )
    from django_tasks.exceptions import TaskResultDoesNotExist, TaskResultMismatch
    from django_tasks.signals import task_enqueued, task_finished, task_started

    # The backport renames these two after 0.12.
    InvalidTask = getattr(exceptions, "InvalidTask", None) or exceptions.InvalidTaskError
    InvalidTaskBackend = (
        getattr(exceptions, "InvalidTaskBackend", None) or exceptions.InvalidTaskBackendError
    )
    LOGGER = django_tasks.__name__

if TYPE_CHECKING:
    from django.tasks.base import (
        Task as TaskOf,
    )
    from django.tasks.base import (
        TaskContext as ContextOf,
    )
    from django.tasks.base import (
        TaskResult as ResultOf,
    )

    AnyTask = Task[..., Any]
    AnyResult = TaskResult[..., Any]
else:

    class _Plain:
        """Takes type parameters and gives back the class without them.

        The contract's classes have parameters in their stubs, and none while the program runs.
        """

        def __init__(self, kind):
            self._kind = kind

        def __getitem__(self, parameters):
            return self._kind

    AnyTask, AnyResult = Task, TaskResult
    TaskOf, ResultOf, ContextOf = _Plain(Task), _Plain(TaskResult), _Plain(TaskContext)

__all__ = [
    "DEFAULT_TASK_BACKEND_ALIAS",
    "DEFAULT_TASK_PRIORITY",
    "DEFAULT_TASK_QUEUE_NAME",
    "LOGGER",
    "TASK_MAX_PRIORITY",
    "TASK_MIN_PRIORITY",
    "TASK_REFRESH_ATTRS",
    "AnyResult",
    "AnyTask",
    "BaseTaskBackend",
    "ContextOf",
    "InvalidTask",
    "InvalidTaskBackend",
    "ResultOf",
    "Task",
    "TaskContext",
    "TaskError",
    "TaskOf",
    "TaskResult",
    "TaskResultDoesNotExist",
    "TaskResultMismatch",
    "TaskResultStatus",
    "task_backends",
    "task_enqueued",
    "task_finished",
    "task_started",
]
