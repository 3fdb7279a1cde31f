"""Django's own tests of the task contract, run against this backend.

Their sources are not in this repository. They come from the sdists that
requirements/upstream.lock pins by hash, are rewritten by rule into a folder of
the state directory, and run from there:

    python -m tests.upstream --suite django-6.1

suites.py says whose tests they are, rewriting.py what is changed in them,
exclusions.py which of them cannot apply, and why.
"""
