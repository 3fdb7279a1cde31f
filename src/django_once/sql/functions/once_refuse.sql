-- Ends the caller's statement with a sentence.
CREATE OR REPLACE FUNCTION once_refuse(sentence text) RETURNS void
LANGUAGE plpgsql AS $once$
BEGIN
    RAISE EXCEPTION USING MESSAGE = sentence, ERRCODE = 'invalid_parameter_value';
END
$once$;
