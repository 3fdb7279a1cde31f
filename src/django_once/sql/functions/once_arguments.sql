-- The arguments of a call by the names of the function's parameters, with those that nobody gave.
-- Refuses what does not fit: it would fail in the worker.
CREATE OR REPLACE FUNCTION once_arguments(task text, parameters jsonb, args jsonb, kwargs jsonb)
RETURNS jsonb
LANGUAGE plpgsql AS $once$
DECLARE
    parameter jsonb;
    name text;
    kind text;
    taken int := 0;
    given int := jsonb_array_length(args);
    rest jsonb := kwargs;
    bound jsonb := '{}';
BEGIN
    FOR parameter IN SELECT value FROM jsonb_array_elements(parameters) LOOP
        name := parameter ->> 'name';
        kind := parameter ->> 'kind';
        IF kind = 'context' THEN
            bound := bound || jsonb_build_object(name, NULL);
        ELSIF kind = 'args' THEN
            bound := bound || jsonb_build_object(name, coalesce((
                SELECT jsonb_agg(value ORDER BY place)
                FROM jsonb_array_elements(args) WITH ORDINALITY AS member(value, place)
                WHERE place > taken), '[]'));
            taken := greatest(taken, given);
        ELSIF kind = 'kwargs' THEN
            bound := bound || jsonb_build_object(name, rest);
            rest := '{}';
        ELSIF kind <> 'named' AND taken < given THEN
            IF kind <> 'placed' AND rest ? name THEN
                PERFORM once_refuse(
                    task || ' got ' || quote_literal(name) || ' twice: in args and in kwargs.');
            END IF;
            bound := bound || jsonb_build_object(name, args -> taken);
            taken := taken + 1;
        ELSIF kind <> 'placed' AND rest ? name THEN
            bound := bound || jsonb_build_object(name, rest -> name);
            rest := rest - name;
        ELSIF parameter ? 'default' THEN
            bound := bound || jsonb_build_object(name, parameter -> 'default');
        ELSE
            PERFORM once_refuse(task || ' misses its argument ' || quote_literal(name) || '.');
        END IF;
    END LOOP;
    IF taken < given THEN
        PERFORM once_refuse(
            task || ' takes at most ' || taken || ' arguments by their place, got ' || given
            || '.');
    END IF;
    IF rest <> '{}' THEN
        PERFORM once_refuse(
            task || ' has no argument ' || (SELECT string_agg(quote_literal(key), ', ')
                FROM jsonb_object_keys(rest) AS key) || '. It takes: '
            || coalesce((SELECT string_agg(value ->> 'name', ', ')
                FROM jsonb_array_elements(parameters) WHERE value ->> 'kind' <> 'context'),
                'none') || '.');
    END IF;
    RETURN bound;
END
$once$;
