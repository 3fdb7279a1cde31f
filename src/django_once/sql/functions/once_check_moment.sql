-- Refuses a moment that some column or clock could not keep.
CREATE OR REPLACE FUNCTION once_check_moment(moment timestamptz) RETURNS void
LANGUAGE plpgsql AS $once$
BEGIN
    IF moment IN ('infinity', '-infinity')
        OR extract(year FROM moment AT TIME ZONE 'UTC') NOT BETWEEN 1970 AND 9998
    THEN
        PERFORM once_refuse('run_after must be from 1970 to 9998, got ' || moment || '.');
    END IF;
END
$once$;
