-- Wakes workers of a backend when this transaction has committed, once for all its jobs.
CREATE OR REPLACE FUNCTION once_wake(backend text, is_ready boolean) RETURNS void
LANGUAGE sql AS $once$
    SELECT pg_notify('once_wakeup', backend || CASE WHEN is_ready THEN '' ELSE ':later' END)
$once$;
