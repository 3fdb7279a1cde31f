-- JSON as Python's json.dumps(value, sort_keys=True) writes it: what a unique job is known by.
CREATE OR REPLACE FUNCTION once_canonical(given jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $once$
DECLARE
    written text := '';
    letter text;
    point int;
BEGIN
    CASE jsonb_typeof(given)
        WHEN 'object' THEN
            SELECT string_agg(
                once_canonical(to_jsonb(key)) || ': ' || once_canonical(value),
                ', ' ORDER BY key COLLATE "C")
            INTO written FROM jsonb_each(given);
            RETURN '{' || coalesce(written, '') || '}';
        WHEN 'array' THEN
            SELECT string_agg(once_canonical(value), ', ' ORDER BY place) INTO written
            FROM jsonb_array_elements(given) WITH ORDINALITY AS member(value, place);
            RETURN '[' || coalesce(written, '') || ']';
        WHEN 'string' THEN
            -- Within ASCII both write the same, but for DEL, which only Python escapes.
            IF octet_length(given::text) = char_length(given::text)
                AND strpos(given::text, chr(127)) = 0
            THEN
                RETURN given::text;
            END IF;
            FOREACH letter IN ARRAY regexp_split_to_array(given::text, '') LOOP
                point := ascii(letter);
                IF point < 127 THEN
                    written := written || letter;
                ELSIF point < 65536 THEN
                    written := written || '\u' || lpad(to_hex(point), 4, '0');
                ELSE
                    written := written || '\u' || to_hex(55296 + (point - 65536) / 1024)
                        || '\u' || to_hex(56320 + (point - 65536) % 1024);
                END IF;
            END LOOP;
            RETURN written;
        WHEN 'number' THEN RETURN once_python(given);
        ELSE RETURN given::text;
    END CASE;
END
$once$;
