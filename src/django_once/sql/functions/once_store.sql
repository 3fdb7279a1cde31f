-- Stores a job unless another has its name; says whether it did, and wakes whoever may run it.
CREATE OR REPLACE FUNCTION once_store(job once_job, wakes boolean) RETURNS boolean
LANGUAGE plpgsql AS $once$
BEGIN
    INSERT INTO once_job (
        id, backend, task, args, kwargs, queue, priority, run_after, due_at, position, enqueued_at,
        expires_at, max_attempts, max_deaths, timeout, delivery, key, generation, every,
        unique_hash, unique_until, limit_key, fair_key, gate, rule, meta
    ) VALUES (
        job.id, job.backend, job.task, job.args, job.kwargs, job.queue, job.priority,
        job.run_after, job.due_at, job.position, job.enqueued_at, job.expires_at,
        job.max_attempts, job.max_deaths, job.timeout, job.delivery, job.key,
        coalesce(job.generation, 0), job.every, job.unique_hash, job.unique_until, job.limit_key,
        job.fair_key, job.gate, job.rule, job.meta
    ) ON CONFLICT (unique_hash) WHERE unique_hash IS NOT NULL DO NOTHING;
    IF FOUND AND wakes THEN
        PERFORM once_wake(job.backend, job.position IS NOT NULL);
    END IF;
    RETURN FOUND;
END
$once$;
