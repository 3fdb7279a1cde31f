-- JSON without the spaces between its parts, as the other jobs have theirs.
CREATE OR REPLACE FUNCTION once_compact(given text) RETURNS text
LANGUAGE sql IMMUTABLE AS $once$
    SELECT CASE WHEN given ~ '\s'
        THEN regexp_replace(given, '("(?:[^"\\]|\\.)*")|\s+', '\1', 'g') ELSE given END
$once$;
