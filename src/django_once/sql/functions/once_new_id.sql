-- A UUIDv7: the millisecond, then its 4096ths, then 62 random bits.
CREATE OR REPLACE FUNCTION once_new_id() RETURNS uuid
LANGUAGE sql VOLATILE AS $once$
    SELECT (
        lpad(to_hex(clock.microseconds / 1000), 12, '0')
        || '7' || lpad(to_hex(clock.microseconds % 1000 * 4096 / 1000), 3, '0')
        || substr(replace(gen_random_uuid()::text, '-', ''), 17)
    )::uuid
    FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) AS clock(microseconds)
$once$;
