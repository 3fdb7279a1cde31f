-- A plain value as Python writes it into a name; NULL for a list or an object, which names nothing.
CREATE OR REPLACE FUNCTION once_python(given jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET extra_float_digits = 1 AS $once$
DECLARE
    written text := given #>> '{}';
    number float8;
BEGIN
    CASE jsonb_typeof(given)
        WHEN 'string' THEN RETURN written;
        WHEN 'null' THEN RETURN 'None';
        WHEN 'boolean' THEN RETURN initcap(written);
        WHEN 'number' THEN
            IF strpos(written, '.') = 0 THEN
                RETURN written;
            END IF;
            number := written::float8;
            -- Where the two begin to write exponents, there is one power of ten between them.
            IF abs(number) >= 1e15 AND abs(number) < 1e16 THEN
                RETURN number::numeric(40, 0)::text || '.0';
            END IF;
            written := number::text;
            RETURN written || CASE WHEN written ~ '[.e]' THEN '' ELSE '.0' END;
        ELSE RETURN NULL;
    END CASE;
END
$once$;
