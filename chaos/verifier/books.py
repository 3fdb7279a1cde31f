"""The books: what must hold between rows, history and ledger, each a promise and what breaks it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from chaos.verifier.facts import FAILED, READY, RUNNING, SUCCESSFUL, Change, Facts, Job

LOST, DOUBLED, WRONG = "lost", "doubled", "wrong"
# Kinds of work that nothing may keep from succeeding in the end.
SURE = ("exactly", "exactly_async", "least", "least_async", "locked", "strike")
# Kinds that nobody ordered: they go on by themselves.
SERIES, CLOCKWORK = "tick", "strike"
STANDING = (SERIES, CLOCKWORK)
PERIOD = 1.0


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was broken, by what, and whether something was lost or doubled by that."""

    promise: str
    sort: str
    said: str


Book = Callable[[Facts], Iterator[tuple[str, str]]]
BOOKS: dict[str, Book] = {}


def book(promise: str) -> Callable[[Book], Book]:
    """Register a function that yields the sort and the sentence of each breach of a promise."""

    def register(function: Book) -> Book:
        BOOKS[promise] = function
        return function

    return register


def violations(facts: Facts) -> list[Violation]:
    """Return every breach of every promise."""
    return [
        Violation(promise, sort, said)
        for promise, function in BOOKS.items()
        for sort, said in function(facts)
    ]


@book("A job exists if and only if the transaction that enqueued it committed.")
def transactions(facts: Facts) -> Iterator[tuple[str, str]]:
    ordered = Counter(order.job for order in facts.orders)
    for order in facts.orders:
        if order.job not in facts.jobs:
            yield LOST, f"Order {order.number} has no job {order.job}."
    for job in facts.jobs.values():
        if ordered[job.id] != (job.kind not in STANDING):
            yield DOUBLED, f"Job {job.id} ({job.kind}) belongs to {ordered[job.id]} orders."
    for job in facts.undone:
        if job in facts.jobs:
            yield DOUBLED, f"Job {job} exists, although its transaction was rolled back."


@book("Everything ends, and what can succeed does.")
def ends(facts: Facts) -> Iterator[tuple[str, str]]:
    for job in facts.jobs.values():
        if job.status not in (SUCCESSFUL, FAILED):
            # What goes on by itself was left waiting, and nothing else may be.
            if job.kind in STANDING and job.status == READY:
                continue
            yield LOST, f"Job {job.id} ({job.kind}) is {job.status}."
        elif job.kind in SURE and job.status != SUCCESSFUL:
            yield LOST, f"Job {job.id} ({job.kind}) is FAILED: {job.reason}, {last_words(job)}"
        elif job.kind.startswith("most") and job.status == FAILED and job.reason != "lost":
            yield WRONG, f"Job {job.id} ({job.kind}) failed as {job.reason!r}: {last_words(job)}"
        elif job.kind == "poison" and (job.status, job.reason) != (FAILED, "died"):
            yield WRONG, f"Job {job.id} killed its worker, and is {job.status} {job.reason!r}."


@book("Exactly one outcome of a job is recorded.")
def outcomes(facts: Facts) -> Iterator[tuple[str, str]]:
    ended = Counter(one.job for one in facts.changes if one.became in (SUCCESSFUL, FAILED))
    for job in facts.jobs.values():
        expected = int(job.status in (SUCCESSFUL, FAILED))
        if ended[job.id] > expected:
            yield DOUBLED, f"Job {job.id} ended {ended[job.id]} times."
        elif ended[job.id] < expected:
            yield WRONG, f"Job {job.id} is {job.status}, but its history knows of no end."


@book("What an exactly_once body writes commits once, with its success.")
def effects(facts: Facts) -> Iterator[tuple[str, str]]:
    by_job = defaultdict(list)
    for effect in facts.effects:
        by_job[effect.job].append(effect)
    for job in facts.jobs.values():
        if job.delivery != "exactly_once":
            continue
        expected, found = int(job.status == SUCCESSFUL), by_job.pop(job.id, [])
        if len(found) != expected:
            sort = DOUBLED if len(found) > expected else LOST
            yield sort, f"Job {job.id} is {job.status}, and has {len(found)} effects."
        elif found and found[0].fence != job.fence:
            yield WRONG, f"Job {job.id} succeeded under another fence than its effect."
    for job_id in by_job:
        yield DOUBLED, f"Job {job_id} left an effect, and is none that may."


@book("An at_most_once body is never started twice.")
def at_most_once(facts: Facts) -> Iterator[tuple[str, str]]:
    starts = Counter(start.job for start in facts.starts)
    for job in facts.jobs.values():
        if job.delivery != "at_most_once":
            continue
        if starts[job.id] > 1:
            yield DOUBLED, f"Job {job.id} was started {starts[job.id]} times."
        if job.status == SUCCESSFUL and not starts[job.id]:
            yield LOST, f"Job {job.id} succeeded without having been started."


@book("A body is called once for each claim, in the process that holds it.")
def starts(facts: Facts) -> Iterator[tuple[str, str]]:
    claims = {(one.job, one.fence): one for one in facts.changes if one.became == RUNNING}
    called = Counter((start.job, start.fence) for start in facts.starts)
    for (job_id, fence), times in called.items():
        if times > 1:
            yield DOUBLED, f"The body of job {job_id} was called {times} times under fence {fence}."
    for start in facts.starts:
        claim = claims.get((start.job, start.fence))
        if claim is None or claim.attempt != start.attempt:
            yield (
                WRONG,
                f"Job {start.job} was started under fence {start.fence}, which no claim has.",
            )
        elif facts.workers.get(claim.worker or "") != start.pid:
            yield (
                WRONG,
                f"Job {start.job} was started by process {start.pid}, which did not hold it.",
            )
    for job in facts.jobs.values():
        if job.status == SUCCESSFUL and not called[job.id, job.fence]:
            yield (
                LOST,
                f"Job {job.id} succeeded under fence {job.fence}, and was not called under it.",
            )


@book("Every change is an allowed one, and carries the claim of the row.")
def transitions(facts: Facts) -> Iterator[tuple[str, str]]:
    before: dict[str, Change] = {}
    claims = set()
    for change in facts.changes:
        found = refused(change, before.get(change.job), facts)
        if found:
            yield WRONG, f"Job {change.job}, change {change.number}: {found}"
        if change.became == RUNNING:
            if (change.job, change.claim) in claims:
                yield WRONG, f"Job {change.job} was claimed twice under {change.claim}."
            claims.add((change.job, change.claim))
        before[change.job] = change
    for job in facts.jobs.values():
        last = before.get(job.id)
        if last is None or (last.became, last.fence) != (job.status, job.fence):
            yield WRONG, f"Job {job.id} stands otherwise than its history ends."


def refused(change: Change, before: Change | None, facts: Facts) -> str:
    """Return what is wrong with one change, or nothing."""
    if change.was is None:
        is_fresh = (change.became, change.claim, change.fence, change.attempt) == (
            READY,
            None,
            0,
            0,
        )
        return "" if is_fresh and before is None else "it was born otherwise than ready."
    if before is None:
        return "it changed before it was born."
    if (before.became, before.claim, before.fence) != (
        change.was,
        change.claim_was,
        change.fence_was,
    ):
        return "it goes on from where nothing had led."
    if (change.was, change.became) == (READY, RUNNING):
        return refused_claim(change, facts)
    if change.was == RUNNING and change.became in (READY, FAILED, SUCCESSFUL):
        return refused_end(change, facts)
    if (change.was, change.became) == (READY, FAILED) and facts.jobs[change.job].kind == SERIES:
        # It was replaced while it waited.
        return "" if change.claim == change.claim_was else "an end changed the claim."
    return f"{change.was} became {change.became}."


def refused_claim(change: Change, facts: Facts) -> str:
    """Return what is wrong with a claim."""
    if change.claim is None or change.claim == change.claim_was:
        return "a claim without a fresh nonce."
    if change.fence != (change.fence_was or 0) + 1:
        return f"the fence went from {change.fence_was} to {change.fence}."
    if change.attempt != (change.attempt_was or 0) + 1:
        return f"the attempt went from {change.attempt_was} to {change.attempt}."
    if facts.workers.get(change.worker or "") != change.writer:
        return f"process {change.writer} claimed it for somebody else."
    return ""


def refused_end(change: Change, facts: Facts) -> str:
    """Return what is wrong with an end, by the holder, or by whoever took the job from it."""
    if change.fence != change.fence_was:
        return "an end moved the fence."
    if change.claim is None:
        return "a success was taken from its holder." if change.became == SUCCESSFUL else ""
    if change.claim != change.claim_was:
        return "an end changed the claim."
    if facts.workers.get(change.worker_was or "") != change.writer:
        return f"process {change.writer} ended an attempt that another process held."
    return ""


@book("Every attempt that did not succeed left one entry, and none was forgotten.")
def attempts(facts: Facts) -> Iterator[tuple[str, str]]:
    for job in facts.jobs.values():
        entries = [entry for entry in job.history if entry["worker"]]
        failed = job.attempt - (job.status == SUCCESSFUL)
        if job.status in (SUCCESSFUL, FAILED) and len(entries) != failed:
            yield (
                WRONG,
                f"Job {job.id} counts {failed} failed attempts, and tells of {len(entries)}.",
            )


@book("What is written under a lock carries a fence that only grows, and one holder has it.")
def locks(facts: Facts) -> Iterator[tuple[str, str]]:
    highest: dict[str, int] = {}
    holders: dict[tuple[str, int], str] = {}
    for write in facts.writes:
        if not write.was_accepted:
            continue
        if write.fence < highest.get(write.name, 0):
            yield WRONG, f"Lock {write.name}: {write.fence} was taken after {highest[write.name]}."
        highest[write.name] = max(write.fence, highest.get(write.name, 0))
        if holders.setdefault((write.name, write.fence), write.job) != write.job:
            yield DOUBLED, f"Lock {write.name}: two jobs wrote under fence {write.fence}."


@book("A series moves one generation at a time, and goes on.")
def series(facts: Facts) -> Iterator[tuple[str, str]]:
    turns = defaultdict(list)
    for job in facts.jobs.values():
        if job.key is not None:
            turns[job.key].append(job.generation)
    for one in facts.series:
        found = sorted(turns[one.key])
        if found != list(range(1, one.generation + 1)):
            sort = DOUBLED if len(set(found)) < len(found) else LOST
            missing = set(range(1, one.generation + 1)).symmetric_difference(found)
            yield sort, f"Series {one.key} is at {one.generation}; its jobs differ: {missing}."
        present = facts.jobs.get(one.job or "")
        if present is None or present.generation != one.generation:
            yield LOST, f"Series {one.key} at {one.generation} has no present job."


@book("A schedule fires once for each due moment, or says why not.")
def schedules(facts: Facts) -> Iterator[tuple[str, str]]:
    fired = Counter(moment.job for moment in facts.moments if moment.job)
    for job in facts.jobs.values():
        if job.kind == CLOCKWORK and fired[job.id] != 1:
            yield DOUBLED, f"Job {job.id} stands for {fired[job.id]} due moments."
    following: float | None = None
    for moment in sorted(facts.moments, key=lambda moment: moment.due_at):
        if following is not None and abs(moment.due_at - following) > PERIOD / 100:
            sort = LOST if moment.due_at > following else DOUBLED
            yield sort, f"After {following - PERIOD:.3f} came the due moment {moment.due_at:.3f}."
        if moment.status == "SKIPPED":
            if not moment.reason:
                yield WRONG, f"The due moment {moment.due_at:.3f} was skipped without a reason."
        elif moment.job not in facts.jobs:
            yield LOST, f"The due moment {moment.due_at:.3f} has no job."
        following = (moment.through or moment.due_at) + PERIOD


def last_words(job: Job) -> str:
    """Return the last line of a job's history, short."""
    said = str(job.history[-1].get("traceback", "")).strip() if job.history else ""
    return said.splitlines()[-1][:160] if said else "and nothing is told."
