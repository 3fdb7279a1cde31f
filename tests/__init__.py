"""The tests of django-once."""
