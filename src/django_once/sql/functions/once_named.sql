-- A name with the values of a call in its places: "tenant:{tenant_id}" is one of these parts, which
-- a declaration holds as texts and as places.
CREATE OR REPLACE FUNCTION once_named(what text, parts jsonb, arguments jsonb) RETURNS text
LANGUAGE plpgsql AS $once$
DECLARE
    part jsonb;
    written text;
    name text := '';
BEGIN
    IF jsonb_typeof(parts) <> 'array' THEN
        PERFORM once_refuse(
            what || ' is ' || quote_literal(parts #>> '{}') || ', which only Python can fill: '
            || 'enqueue this task from there, or name its arguments plainly.');
    END IF;
    FOR part IN SELECT value FROM jsonb_array_elements(parts) LOOP
        IF jsonb_typeof(part) = 'string' THEN
            written := part #>> '{}';
        ELSE
            written := once_python(arguments -> (part ->> 'place'));
        END IF;
        IF written IS NULL THEN
            PERFORM once_refuse(
                what || ': ' || quote_literal(part ->> 'place') || ' is a list or an object, which '
                || 'names nothing. Use an argument that is text or a number.');
        END IF;
        name := name || written;
    END LOOP;
    IF char_length(name) NOT BETWEEN 1 AND 160 THEN
        PERFORM once_refuse(
            what || ' became a name of ' || char_length(name)
            || ' characters; there is room for 160.');
    END IF;
    RETURN name;
END
$once$;
