"""Memory: the rows, and the only verbs that change them."""

from django_once.models.audit import AuditEntry
from django_once.models.broadcast import Broadcast
from django_once.models.dashboard import Dashboard
from django_once.models.declaration import Declaration
from django_once.models.execution import TaskExecution
from django_once.models.figure import Figure
from django_once.models.gate import Gate
from django_once.models.job import Job
from django_once.models.lock import Lock
from django_once.models.notification import Notification
from django_once.models.pause import Pause
from django_once.models.schedule import Schedule
from django_once.models.series import Series
from django_once.models.step import Progress, Step
from django_once.models.strike import Strike
from django_once.models.tally import Tally
from django_once.models.worker import Worker

__all__ = [
    "AuditEntry", "Broadcast", "Dashboard", "Declaration", "Figure", "Gate", "Job", "Lock",
    "Notification", "Pause", "Progress", "Schedule", "Series", "Step", "Strike", "Tally",
    "TaskExecution", "Worker",
]  # fmt: skip
