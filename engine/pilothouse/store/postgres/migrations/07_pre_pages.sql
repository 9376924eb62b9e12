-- What a gateway passes on to an attempt, in pages. A page has a row for each item after `_after` that fits into what is
-- left of `_size` bytes, and a last row without an item: `next` there is the size of the item that follows, 0 if none does.
-- Items are measured one by one, so that of what comes later nothing is read.

CREATE FUNCTION session_page(_by attempt_key, _session uuid, _after bigint, _size bigint)
RETURNS TABLE (id uuid, parent uuid, seq bigint, type text, body json, attempt uuid, at timestamptz, leaf uuid, next bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    entry   entries;
    entered bigint;
BEGIN
    IF _after = 0 THEN
        PERFORM hold_attempt(_by, '[]');
        INSERT INTO sessions (tenant, id, run) VALUES (_by.tenant, _session, _by.run)
        ON CONFLICT (tenant, id) DO NOTHING;
    ELSE
        PERFORM check_attempt(_by);
    END IF;
    -- Both change together, so up to there the entries are those that belong to this leaf.
    SELECT s.leaf, s.entry_seq INTO session_page.leaf, entered
    FROM sessions AS s WHERE s.tenant = _by.tenant AND s.id = _session AND s.run = _by.run;
    IF NOT FOUND THEN
        RAISE 'foreign_session' USING ERRCODE = 'PH001';
    END IF;
    session_page.next := 0;
    FOR entry IN
        SELECT * FROM entries
        WHERE tenant = _by.tenant AND session = _session AND seq > _after AND seq <= entered ORDER BY seq
    LOOP
        session_page.next := octet_length(entry.type) + octet_length(entry.body::text);
        _size := _size - session_page.next;
        EXIT WHEN _size < 0;
        session_page.next := 0;
        RETURN QUERY SELECT entry.id, entry.parent, entry.seq, entry.type, entry.body, entry.attempt, entry.at,
                            NULL::uuid, NULL::bigint;
    END LOOP;
    RETURN QUERY SELECT NULL::uuid, NULL::uuid, NULL::bigint, NULL::text, NULL::json, NULL::uuid, NULL::timestamptz,
                        session_page.leaf, session_page.next;
END $$;

CREATE FUNCTION call_page(_by attempt_key, _session uuid, _turn uuid, _after bigint, _size bigint)
RETURNS TABLE (
    turn uuid, ordinal integer, call text, tool text, arguments text, digest text, idempotent boolean, attempt uuid,
    intended_at timestamptz, result json, is_error boolean, finished_at timestamptz, next bigint
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    made tool_calls;
BEGIN
    PERFORM check_attempt(_by);
    PERFORM check_session(_by, _session);
    call_page.next := 0;
    FOR made IN
        SELECT * FROM tool_calls
        WHERE tenant = _by.tenant AND session = _session AND turn = _turn AND ordinal > _after ORDER BY ordinal
    LOOP
        call_page.next := octet_length(made.call) + octet_length(made.tool) + (octet_length(made.arguments) + 2) / 3 * 4
                          + coalesce(octet_length(made.result::text), 0);
        _size := _size - call_page.next;
        EXIT WHEN _size < 0;
        call_page.next := 0;
        RETURN QUERY SELECT made.turn, made.ordinal, made.call, made.tool,
                            translate(encode(made.arguments, 'base64'), E'\n', ''), made.digest, made.idempotent,
                            made.attempt, made.intended_at, made.result, made.is_error, made.finished_at, NULL::bigint;
    END LOOP;
    RETURN QUERY SELECT NULL::uuid, NULL::integer, NULL::text, NULL::text, NULL::text, NULL::text, NULL::boolean,
                        NULL::uuid, NULL::timestamptz, NULL::json, NULL::boolean, NULL::timestamptz, call_page.next;
END $$;

CREATE FUNCTION blob_piece(_by attempt_key, _digest text, _start integer, _length integer)
RETURNS TABLE (size bigint, piece bytea)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM check_attempt(_by);
    RETURN QUERY
    SELECT octet_length(b.data)::bigint, substring(b.data FROM _start + 1 FOR _length)
    FROM blobs AS b WHERE b.tenant = _by.tenant AND b.digest = _digest;
END $$;
