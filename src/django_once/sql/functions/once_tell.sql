-- Tells whoever listens on a line when this transaction commits. What is too long for a NOTIFY is
-- kept in a row, and only its id is told. Each has an id: of equal ones PostgreSQL would send one.
CREATE OR REPLACE FUNCTION once_tell(line text, told text) RETURNS uuid
LANGUAGE plpgsql SET search_path FROM CURRENT AS $once$
DECLARE
    id uuid := once_new_id();
BEGIN
    IF octet_length(told) < 7960 THEN
        PERFORM pg_notify(line, id || ':' || told);
    ELSE
        INSERT INTO once_broadcast (id, told) VALUES (id, told);
        PERFORM pg_notify(line, id::text);
    END IF;
    RETURN id;
END
$once$;
