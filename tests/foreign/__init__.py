"""Other people's Tasks backends under `@exactly_once`: one permit, delivered to eight workers.

    python -m tests.foreign

It needs what requirements/foreign.in names, the database of ONCE_TEST_DATABASE_URL, and for
django-tasks-rq the Redis of ONCE_TEST_REDIS_URL.
"""
