-- Stores a job unless another has its name; returns the id of the one that stands for the call.
CREATE OR REPLACE FUNCTION once_add_unique(job once_job, on_conflict text, wakes boolean)
RETURNS uuid
LANGUAGE plpgsql AS $once$
DECLARE
    there once_job;
BEGIN
    -- Between two looks a job may end and another begin; not for ever.
    FOR attempt IN 1..20 LOOP
        SELECT * INTO there FROM once_job AS other WHERE other.unique_hash = job.unique_hash;
        IF NOT FOUND THEN
            IF once_store(job, wakes) THEN
                RETURN job.id;
            END IF;
            CONTINUE;
        END IF;
        UPDATE once_job AS other SET unique_hash = NULL
        WHERE other.id = there.id AND other.unique_hash = job.unique_hash
            AND there.unique_until <= once_now() AND other.unique_until <= once_now()
            AND (other.status IN ('SUCCESSFUL', 'FAILED')
                OR (other.status = 'RUNNING' AND other.unique_hash >= 's'));
        CONTINUE WHEN FOUND;
        IF on_conflict = 'raise' THEN
            RAISE EXCEPTION USING ERRCODE = 'unique_violation', MESSAGE =
                'Job ' || there.id || ' of ' || job.task || ' is '
                || CASE there.status WHEN 'READY' THEN 'waiting' WHEN 'RUNNING' THEN 'running'
                    ELSE 'ended' END
                || ' and has this name already; nothing was enqueued.';
        END IF;
        IF on_conflict <> 'replace' OR there.status <> 'READY' THEN
            RETURN there.id;
        END IF;
        UPDATE once_job AS other SET
            args = job.args, kwargs = job.kwargs, priority = job.priority, queue = job.queue,
            gate = job.gate, rule = job.rule, limit_key = job.limit_key, fair_key = job.fair_key,
            blocked_by = '', gate_rank = NULL, run_after = job.run_after, due_at = job.due_at,
            position = job.position
        WHERE other.id = there.id AND other.unique_hash = job.unique_hash
            AND other.status = 'READY';
        IF FOUND THEN
            IF wakes THEN
                PERFORM once_wake(job.backend, true);
            END IF;
            RETURN there.id;
        END IF;
    END LOOP;
    PERFORM once_refuse(
        'Job ' || job.id || ' of ' || job.task || ' is unique, and the job that has its name could '
        || 'not be read: a transaction at REPEATABLE READ does not see what was enqueued after it '
        || 'began.');
END
$once$;
