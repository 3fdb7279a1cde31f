-- A job with what its row says of the limits and shares that its task is under, and of its name.
CREATE OR REPLACE FUNCTION once_flow(job once_job, said jsonb, bound jsonb) RETURNS once_job
LANGUAGE plpgsql AS $once$
DECLARE
    share text;
    named text;
BEGIN
    IF said ? 'fair_key' THEN
        share := once_named('fair_key of ' || job.task, said -> 'fair_key', bound);
        job.fair_key := share;
        job.gate := 'fair:' || job.queue || ':' || job.priority || ':' || share;
    END IF;
    IF said ? 'limit' THEN
        job.limit_key := once_named('The key of the Limit of ' || job.task, said -> 'limit', bound);
        job.gate := 'limit:' || job.limit_key;
    END IF;
    job.rule := coalesce(said -> 'rules' ->> share, said ->> 'rule');
    IF said ? 'unique' THEN
        named := CASE WHEN said -> 'unique' ? 'key'
            THEN once_named(
                'The key of the Unique of ' || job.task, said -> 'unique' -> 'key', bound)
            ELSE once_canonical(bound) END;
        job.unique_hash := (said -> 'unique' ->> 'until') || left(encode(sha256(
            convert_to(job.backend, 'UTF8') || '\x00'::bytea || convert_to(job.task, 'UTF8')
            || '\x00'::bytea || convert_to(named, 'UTF8')), 'hex'), 63);
        job.unique_until := once_now()
            + (said -> 'unique' ->> 'window')::float8 * interval '1 second';
    END IF;
    RETURN job;
END
$once$;
