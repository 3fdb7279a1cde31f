-- The time of the statement, moved as far as a test has moved the clock of this session.
CREATE OR REPLACE FUNCTION once_now() RETURNS timestamptz
LANGUAGE sql STABLE AS $once$
    SELECT statement_timestamp()
        + coalesce(nullif(current_setting('once.moved_seconds', true), '')::float8, 0)
        * interval '1 second'
$once$;
