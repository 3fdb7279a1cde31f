"""The dashboard as Django's admin knows it: a name in its index, and what permissions hang on."""

from __future__ import annotations

from django_once.models.job.row import Job


class Dashboard(Job):
    """No row of its own: `once.view_dashboard` lets people look, `once.operate` lets them act."""

    class Meta:
        app_label = "once"
        proxy = True
        verbose_name = verbose_name_plural = "dashboard"
        default_permissions = ("view",)
        permissions = [("operate", "Can operate background work from the dashboard")]
