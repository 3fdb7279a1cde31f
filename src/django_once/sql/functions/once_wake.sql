-- Wakes workers of a backend when this transaction has committed, once for all its jobs. A session
-- that enqueues again and again sends few: a NOTIFY takes a lock of the whole server at its commit.
CREATE OR REPLACE FUNCTION once_wake(backend text, is_ready boolean) RETURNS void
LANGUAGE plpgsql AS $once$
DECLARE
    word text := backend || CASE WHEN is_ready THEN '' ELSE ':later' END;
    setting text := 'once.woken_' || left(md5(word), 8);
    woken text := current_setting(setting, true);
    now_is double precision := extract(epoch FROM clock_timestamp());
BEGIN
    IF coalesce(woken, '') <> '' AND now_is - woken::double precision BETWEEN 0 AND 0.05 THEN
        RETURN;
    END IF;
    PERFORM set_config(setting, now_is::text, false);
    PERFORM pg_notify('once_wakeup', word);
END
$once$;
