"""The addresses of a site that shows its figures."""

from django.urls import include, path

urlpatterns = [path("metrics/", include("django_once.contrib.prometheus.urls"))]
