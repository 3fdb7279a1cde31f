-- Stores a job of a task in this transaction, as `task.enqueue` does from Python; returns its id.
--
--     SELECT once_enqueue('shop.tasks.charge', kwargs => jsonb_build_object('order_id', 7));
--
-- Of a task with a key or a uniqueness it is the id of the job that stands for the call: this one,
-- or one that was there before.
CREATE OR REPLACE FUNCTION once_enqueue(
    task text,
    args anycompatible DEFAULT NULL,
    kwargs anycompatible DEFAULT NULL,
    queue text DEFAULT NULL,
    priority integer DEFAULT NULL,
    run_after timestamptz DEFAULT NULL,
    backend text DEFAULT NULL,
    key text DEFAULT NULL
) RETURNS uuid
-- Whoever calls it may look elsewhere for tables; a dump that is restored looks nowhere.
LANGUAGE plpgsql SET search_path FROM CURRENT AS $once$
DECLARE
    job once_job;
    said jsonb;
    house jsonb;
    given jsonb := once_json(args, 'args', '[]');
    named jsonb := once_json(kwargs, 'kwargs', '{}');
    bound jsonb;
    most bigint;
BEGIN
    SELECT declared.backend, declared.said INTO job.backend, said
    FROM once_declared(once_enqueue.task, once_enqueue.backend) AS declared;
    SELECT declaration.said::jsonb INTO house FROM once_declaration AS declaration
    WHERE declaration.task = '' AND declaration.backend = job.backend;
    bound := once_arguments(once_enqueue.task, said -> 'parameters', given, named);

    job.id := once_new_id();
    job.task := once_enqueue.task;
    job.args := once_compact(CASE
        WHEN pg_typeof(args) IN ('json'::regtype, 'text'::regtype) AND args IS NOT NULL
        THEN args::text ELSE given::text END);
    job.kwargs := once_compact(CASE
        WHEN pg_typeof(kwargs) IN ('json'::regtype, 'text'::regtype) AND kwargs IS NOT NULL
        THEN kwargs::text ELSE named::text END);
    most := (house ->> 'max_arguments')::bigint;
    IF greatest(octet_length(job.args), octet_length(job.kwargs)) > most THEN
        PERFORM once_refuse(
            CASE WHEN octet_length(job.args) > most THEN 'args' ELSE 'kwargs' END || ' takes '
            || to_char(
                greatest(octet_length(job.args), octet_length(job.kwargs)), 'FM999,999,999,999')
            || ' bytes as JSON and may take ' || to_char(most, 'FM999,999,999,999')
            || ': keep large things elsewhere and pass where they are.');
    END IF;

    job.queue := coalesce(once_enqueue.queue, said ->> 'queue');
    job.priority := once_priority(coalesce(once_enqueue.priority, (said ->> 'priority')::int));
    PERFORM once_check_queue(job.queue, job.backend, house -> 'queues');
    PERFORM once_check_moment(once_enqueue.run_after);
    job.max_attempts := coalesce(said -> 'max_attempts', house -> 'max_attempts')::int;
    job.max_deaths := coalesce(said -> 'max_deaths', house -> 'max_deaths')::int;
    job.timeout := (said ->> 'timeout')::float8;
    job.delivery := said ->> 'delivery';
    job.meta := coalesce(said ->> 'meta', '{}');

    job.run_after := coalesce(
        once_enqueue.run_after, once_now() + (said ->> 'debounce')::float8 * interval '1 second');
    job.enqueued_at := once_now();
    job.due_at := coalesce(job.run_after, once_now());
    job.expires_at := greatest(coalesce(once_enqueue.run_after, once_now()), once_now())
        + (said ->> 'expires')::float8 * interval '1 second';
    job := once_flow(job, said, bound);
    -- Not the statement's time: the jobs of one statement have an order, too.
    IF job.due_at <= once_now() AND job.gate IS NULL THEN
        job.position := extract(
            epoch FROM once_now() + (clock_timestamp() - statement_timestamp())) * 1000000;
    END IF;

    IF once_enqueue.key IS NOT NULL OR said ? 'key' THEN
        job.key := coalesce(
            once_enqueue.key, once_named('The key of ' || job.task, said -> 'key', bound));
        job.every := (said ->> 'every')::float8;
        RETURN once_add(job, (house ->> 'wakes')::boolean);
    END IF;
    IF job.unique_hash IS NOT NULL THEN
        RETURN once_add_unique(
            job, said -> 'unique' ->> 'on_conflict', (house ->> 'wakes')::boolean);
    END IF;
    PERFORM once_store(job, (house ->> 'wakes')::boolean);
    RETURN job.id;
END
$once$;
