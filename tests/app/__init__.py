"""An app of a user of django-once, as far as the tests need one."""
