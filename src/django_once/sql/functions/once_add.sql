-- Stores a job under its key unless one waits or runs there; returns the id of the one that does.
CREATE OR REPLACE FUNCTION once_add(job once_job, wakes boolean) RETURNS uuid
LANGUAGE plpgsql AS $once$
DECLARE
    series once_series;
BEGIN
    IF char_length(job.key) NOT BETWEEN 1 AND 160 THEN
        PERFORM once_refuse(
            'A key has 1 to 160 characters, this has ' || char_length(job.key) || '.');
    END IF;
    IF job.unique_hash IS NOT NULL THEN
        PERFORM once_refuse(
            'Of one key there is one job already, so the uniqueness of ' || job.task
            || ' has nothing to add: leave out the key.');
    END IF;
    SELECT * INTO series FROM once_series AS one
    WHERE one.backend = job.backend AND one.key = job.key FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO once_series (id, backend, key) VALUES (gen_random_uuid(), job.backend, job.key)
        ON CONFLICT DO NOTHING;
        SELECT * INTO STRICT series FROM once_series AS one
        WHERE one.backend = job.backend AND one.key = job.key FOR UPDATE;
    END IF;
    PERFORM FROM once_job AS present
    WHERE present.id = series.job AND present.status IN ('READY', 'RUNNING');
    IF FOUND THEN
        RETURN series.job;
    END IF;
    job.generation := series.generation + 1;
    PERFORM once_store(job, wakes);
    UPDATE once_series SET generation = job.generation, job = job.id, cancelled_at = NULL
    WHERE id = series.id;
    RETURN job.id;
END
$once$;
