"""The project that is put under load: Django, django-once, and the work in `work/`."""
