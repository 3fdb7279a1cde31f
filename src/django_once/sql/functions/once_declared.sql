-- What a task says of itself, with the backend that its jobs are of. Refuses what nobody declared.
CREATE OR REPLACE FUNCTION once_declared(wanted text, asked text, OUT backend text, OUT said jsonb)
LANGUAGE plpgsql STABLE AS $once$
DECLARE
    near text;
BEGIN
    SELECT declaration.backend, declaration.said::jsonb INTO backend, said
    FROM once_declaration AS declaration
    WHERE declaration.task = wanted AND wanted <> ''
    ORDER BY declaration.backend = asked DESC NULLS LAST, declaration.backend LIMIT 1;
    IF NOT FOUND THEN
        -- The one with the most groups of three letters in common.
        SELECT declaration.task INTO near
        FROM once_declaration AS declaration
        WHERE declaration.task <> '' AND (
            SELECT count(*) FROM generate_series(1, char_length(wanted) - 2) AS place
            WHERE strpos(declaration.task, substr(wanted, place, 3)) > 0
        ) * 2 > char_length(wanted)
        ORDER BY (
            SELECT count(*) FROM generate_series(1, char_length(wanted) - 2) AS place
            WHERE strpos(declaration.task, substr(wanted, place, 3)) > 0
        ) DESC, abs(char_length(declaration.task) - char_length(wanted)), declaration.task LIMIT 1;
        PERFORM once_refuse(
            'No task ' || coalesce(quote_literal(left(wanted, 80)), 'NULL') || ' is known here. '
            || coalesce('Did you mean ' || quote_literal(near) || '?',
                'Write its path, such as ''shop.tasks.charge''.')
            || ' What is new becomes known by: python manage.py migrate');
    END IF;
    IF asked IS NOT NULL AND asked <> backend THEN
        PERFORM FROM once_declaration AS declaration
        WHERE declaration.backend = asked AND declaration.task = '';
        IF NOT FOUND THEN
            PERFORM once_refuse(
                'No backend ' || quote_literal(left(asked, 80)) || ' is known here.');
        END IF;
        backend := asked;
    END IF;
END
$once$;
