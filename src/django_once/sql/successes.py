"""The end that most attempts have: the body returned. Of it there is less to say and to do.

A batch of these names job, nonce, value and time, and nothing that stays as it is. Beside the
statement for ends of all kinds it takes the database a fifth less, and Python a third.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from django_once.sql.values import Outcome
from django_once.sql.words import Words, write_json

COLUMNS: Final = {"job_id": "uuid", "nonce": "uuid", "value": "text", "ran": "real"}


def changes(words: Words) -> str:
    """SQL of what a success sets, from the row `job` and the outcome `o`."""
    began = words.later("-o.ran")
    return f"""
        status = 'SUCCESSFUL', reason = '', return_value = o.value, suspect = false,
        position = NULL, gate_rank = NULL, finished_at = {words.now},
        unique_hash = CASE WHEN job.unique_until IS NOT NULL THEN job.unique_hash END,
        started_at = coalesce(job.started_at, {began}),
        last_attempted_at = coalesce(job.last_attempted_at, {began})"""


def batch(words: Words, outcomes: Sequence[Outcome]) -> str:
    """Return these outcomes as the one parameter of the statement."""
    written = str if words.connection.features.has_native_uuid_field else _hex
    # Of one claim there are hundreds.
    nonces = {id(outcome.claim): outcome.claim for outcome in outcomes}
    texts = {place: written(claim) for place, claim in nonces.items()}
    return write_json(
        [
            {"job_id": written(job), "nonce": texts[id(claim)], "value": value, "ran": ran}
            for job, claim, _, value, ran, *_ in outcomes
        ]
    )


def _hex(id: UUID) -> str:
    return id.hex
