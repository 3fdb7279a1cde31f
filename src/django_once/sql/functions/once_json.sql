-- What was handed over as JSON, whether as text, json, jsonb or an array; NULL is what stands for
-- nothing. Refuses what a task could not receive as it is.
CREATE OR REPLACE FUNCTION once_json(given anyelement, name text, nothing text) RETURNS jsonb
LANGUAGE plpgsql AS $once$
DECLARE
    found jsonb;
    wanted text := CASE nothing WHEN '[]' THEN 'array' ELSE 'object' END;
BEGIN
    IF given IS NULL THEN
        RETURN nothing::jsonb;
    END IF;
    IF pg_typeof(given) IN ('json'::regtype, 'text'::regtype) THEN
        BEGIN
            found := given::text::jsonb;
        EXCEPTION
            WHEN untranslatable_character THEN
                PERFORM once_refuse(
                    name || ' holds a NUL character, which PostgreSQL cannot keep.');
            WHEN invalid_text_representation THEN
                PERFORM once_refuse(
                    name || ' is not JSON: ' || left(quote_literal(given::text), 60) || '.');
        END;
    ELSE
        found := to_jsonb(given);
    END IF;
    IF jsonb_typeof(found) <> wanted THEN
        PERFORM once_refuse(
            name || ' must be a JSON ' || wanted || ' such as '
            || CASE wanted WHEN 'array' THEN '[1, "a"]' ELSE '{"order_id": 1}' END
            || ', got ' || jsonb_typeof(found) || '.');
    END IF;
    IF jsonb_path_exists(found, 'strict $.**{100} ? (@.type() == "array" || @.type() == "object")')
    THEN
        PERFORM once_refuse(name || ' is nested deeper than 100 levels.');
    END IF;
    IF jsonb_path_exists(found, 'strict $.** ? (@.type() == "number")
        ? (@ > 9223372036854775807 || @ < -9223372036854775808)')
    THEN
        PERFORM once_refuse(name || ' holds a number beyond 64 bits: pass it as text.');
    END IF;
    RETURN found;
END
$once$;
