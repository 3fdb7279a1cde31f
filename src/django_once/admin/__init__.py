"""Django's admin: jobs to look at, retry and cancel, workers to look at, schedules to steer."""

from __future__ import annotations

from django.contrib import admin

from django_once.admin.jobs import JobAdmin
from django_once.admin.locks import LockAdmin
from django_once.admin.schedules import ScheduleAdmin, TaskExecutionAdmin
from django_once.admin.workers import WorkerAdmin
from django_once.dashboard.site import DashboardAdmin
from django_once.models import Dashboard, Job, Lock, Schedule, TaskExecution, Worker

__all__ = [
    "DashboardAdmin",
    "JobAdmin",
    "LockAdmin",
    "ScheduleAdmin",
    "TaskExecutionAdmin",
    "WorkerAdmin",
]

admin.site.register(Dashboard, DashboardAdmin)
admin.site.register(Job, JobAdmin)
admin.site.register(Lock, LockAdmin)
admin.site.register(Worker, WorkerAdmin)
admin.site.register(Schedule, ScheduleAdmin)
admin.site.register(TaskExecution, TaskExecutionAdmin)
