-- A priority, refused when it is none.
CREATE OR REPLACE FUNCTION once_priority(priority integer) RETURNS integer
LANGUAGE plpgsql AS $once$
BEGIN
    IF priority NOT BETWEEN -100 AND 100 THEN
        PERFORM once_refuse(
            'priority must be a whole number between -100 and 100, got ' || priority || '.');
    END IF;
    RETURN priority;
END
$once$;
