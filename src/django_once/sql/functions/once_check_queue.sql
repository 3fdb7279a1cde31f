-- Refuses a queue that no backend could have, or that this one does not have.
CREATE OR REPLACE FUNCTION once_check_queue(queue text, backend text, queues jsonb) RETURNS void
LANGUAGE plpgsql AS $once$
BEGIN
    IF char_length(queue) NOT BETWEEN 1 AND 64 OR queue = '*' OR strpos(queue, ',') > 0
        OR queue <> btrim(queue, E' \t\n\r\f\v') OR queue ~ '[[:cntrl:]]'
    THEN
        PERFORM once_refuse(
            'A queue''s name has 1 to 64 characters, no comma, no space at its ends and nothing '
            || 'that cannot be printed, and ''*'' stands for all queues: got '
            || quote_literal(left(queue, 80)) || '.');
    END IF;
    IF queues <> '[]' AND NOT queues ? queue THEN
        PERFORM once_refuse(
            'Queue ' || quote_literal(queue) || ' is not valid for backend '
            || quote_literal(backend) || '. It has: '
            || (SELECT string_agg(name, ', ') FROM jsonb_array_elements_text(queues) AS name)
            || '.');
    END IF;
END
$once$;
