-- What the process of one attempt reads and writes: one function each, under the rules of the writes to a run.

CREATE TYPE attempt_key AS (tenant uuid, run uuid, attempt uuid, fence bigint);

CREATE FUNCTION check_attempt(_by attempt_key) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM attempts
    WHERE tenant = _by.tenant AND run = _by.run AND id = _by.attempt AND fence = _by.fence AND state = 'Open';
    IF NOT FOUND THEN
        RAISE 'superseded' USING ERRCODE = 'PH001';
    END IF;
END $$;

-- Every write of an attempt begins here. `FOR SHARE`: whoever closes the attempt waits for this write, or this write
-- finds it closed. Events lock the run's row, and so they come before that, in the order of a transition; without
-- events the run's row is left alone.
CREATE FUNCTION hold_attempt(_by attempt_key, _events json) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    count  integer := json_array_length(_events);
    before bigint;
BEGIN
    IF count > 0 THEN
        UPDATE runs SET event_seq = event_seq + count WHERE tenant = _by.tenant AND id = _by.run
        RETURNING event_seq - count INTO before;
        IF FOUND THEN
            PERFORM write_events(_by.tenant, _by.run, before, _events);
        END IF;
    END IF;
    PERFORM FROM attempts
    WHERE tenant = _by.tenant AND run = _by.run AND id = _by.attempt AND fence = _by.fence AND state = 'Open'
    FOR SHARE;
    IF NOT FOUND THEN
        RAISE 'superseded' USING ERRCODE = 'PH001';
    END IF;
END $$;

CREATE FUNCTION check_session(_by attempt_key, _session uuid) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM sessions WHERE tenant = _by.tenant AND id = _session AND run = _by.run;
    IF NOT FOUND THEN
        RAISE 'no_session' USING ERRCODE = 'PH001';
    END IF;
END $$;

CREATE FUNCTION open_session(_by attempt_key, _session uuid) RETURNS SETOF session_entries
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM hold_attempt(_by, '[]');
    INSERT INTO sessions (tenant, id, run) VALUES (_by.tenant, _session, _by.run)
    ON CONFLICT (tenant, id) DO NOTHING;
    PERFORM FROM sessions WHERE tenant = _by.tenant AND id = _session AND run = _by.run;
    IF NOT FOUND THEN
        RAISE 'foreign_session' USING ERRCODE = 'PH001';
    END IF;
    RETURN QUERY SELECT * FROM session_entries WHERE tenant = _by.tenant AND session = _session;
END $$;

CREATE FUNCTION list_tool_calls(_by attempt_key, _session uuid, _turn uuid) RETURNS SETOF tool_calls
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM check_attempt(_by);
    PERFORM check_session(_by, _session);
    RETURN QUERY
    SELECT * FROM tool_calls WHERE tenant = _by.tenant AND session = _session AND turn = _turn ORDER BY ordinal;
END $$;

CREATE FUNCTION intend_call(_by attempt_key, _session uuid, _call json, _arguments bytea, _events json)
RETURNS timestamptz
LANGUAGE plpgsql AS $$
DECLARE
    given record;
BEGIN
    PERFORM hold_attempt(_by, _events);
    PERFORM check_session(_by, _session);
    SELECT * INTO given FROM json_to_record(_call) AS (
        turn uuid, ordinal integer, call text, tool text, digest text, idempotent boolean
    );
    PERFORM FROM entries WHERE tenant = _by.tenant AND session = _session AND id = given.turn;
    IF NOT FOUND THEN
        RAISE 'no_turn' USING ERRCODE = 'PH001';
    END IF;
    INSERT INTO tool_calls AS t (tenant, session, turn, ordinal, call, tool, arguments, digest, idempotent, attempt,
                                 intended_at)
    VALUES (_by.tenant, _session, given.turn, given.ordinal, given.call, given.tool, _arguments, given.digest,
            given.idempotent, _by.attempt, now())
    ON CONFLICT (tenant, session, turn, ordinal) DO UPDATE
    SET attempt = excluded.attempt, intended_at = excluded.intended_at
    WHERE t.result IS NULL AND t.idempotent AND excluded.idempotent
      AND (t.call, t.tool, t.digest) = (excluded.call, excluded.tool, excluded.digest);
    IF NOT FOUND THEN
        RAISE 'intent' USING ERRCODE = 'PH001';
    END IF;
    RETURN now();
END $$;

-- The attempt is held, and the session is its run's.
CREATE FUNCTION write_results(_tenant uuid, _session uuid, _outcomes json) RETURNS SETOF tool_calls
LANGUAGE plpgsql AS $$
DECLARE
    outcome record;
BEGIN
    FOR outcome IN
        SELECT * FROM json_to_recordset(_outcomes) AS (
            place integer, turn uuid, ordinal integer, is_error boolean, result text, blob text, digest text
        )
    LOOP
        IF outcome.blob IS NOT NULL THEN
            INSERT INTO blobs (tenant, digest, data)
            VALUES (_tenant, outcome.digest, convert_to(outcome.blob, 'UTF8'))
            ON CONFLICT (tenant, digest) DO NOTHING;
        END IF;
        RETURN QUERY
        UPDATE tool_calls SET result = outcome.result::json, is_error = outcome.is_error, finished_at = now()
        WHERE tenant = _tenant AND session = _session AND turn = outcome.turn AND ordinal = outcome.ordinal
          AND NOT pending AND result IS NULL
        RETURNING *;
        IF NOT FOUND THEN
            PERFORM FROM tool_calls
            WHERE tenant = _tenant AND session = _session AND turn = outcome.turn AND ordinal = outcome.ordinal
              AND NOT pending;
            RAISE '%', CASE WHEN FOUND THEN 'result_there' ELSE 'no_intent' END
                USING ERRCODE = 'PH001', DETAIL = outcome.place;
        END IF;
    END LOOP;
END $$;

CREATE FUNCTION record_results(_by attempt_key, _session uuid, _outcomes json, _events json) RETURNS SETOF tool_calls
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM hold_attempt(_by, _events);
    PERFORM check_session(_by, _session);
    RETURN QUERY SELECT * FROM write_results(_by.tenant, _session, _outcomes);
END $$;

-- Returns the number of entries before these, and the time that they bear.
CREATE FUNCTION append_entries(
    _by attempt_key, _session uuid, _leaf uuid, _new_leaf uuid, _entries json, _outcomes json, _events json,
    OUT before bigint, OUT written_at timestamptz
)
LANGUAGE plpgsql AS $$
DECLARE
    entry record;
BEGIN
    PERFORM hold_attempt(_by, _events);
    UPDATE sessions SET leaf = _new_leaf, entry_seq = entry_seq + json_array_length(_entries)
    WHERE tenant = _by.tenant AND id = _session AND run = _by.run AND leaf IS NOT DISTINCT FROM _leaf
    RETURNING entry_seq - json_array_length(_entries) INTO before;
    IF NOT FOUND THEN
        PERFORM check_session(_by, _session);
        RAISE 'leaf_moved' USING ERRCODE = 'PH001';
    END IF;
    IF json_array_length(_outcomes) > 0 THEN
        PERFORM write_results(_by.tenant, _session, _outcomes);
    END IF;
    FOR entry IN
        SELECT * FROM json_to_recordset(_entries) AS (
            place integer, id uuid, parent uuid, type text, body text, target uuid
        )
    LOOP
        INSERT INTO entries (tenant, session, id, parent, seq, type, body, attempt)
        VALUES (_by.tenant, _session, entry.id, entry.parent, before + 1 + entry.place, entry.type, entry.body::json,
                _by.attempt)
        ON CONFLICT (tenant, session, id) DO NOTHING;
        IF NOT FOUND THEN
            RAISE 'entry_there' USING ERRCODE = 'PH001';
        END IF;
        CONTINUE WHEN entry.target IS NULL;
        PERFORM FROM entries WHERE tenant = _by.tenant AND session = _session AND id = entry.target;
        IF NOT FOUND THEN
            RAISE 'no_target' USING ERRCODE = 'PH001', DETAIL = entry.place;
        END IF;
    END LOOP;
    written_at := now();
END $$;

CREATE FUNCTION put_blob(_by attempt_key, _digest text, _data bytea) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM hold_attempt(_by, '[]');
    INSERT INTO blobs (tenant, digest, data) VALUES (_by.tenant, _digest, _data)
    ON CONFLICT (tenant, digest) DO NOTHING;
END $$;

CREATE FUNCTION get_blob(_by attempt_key, _digest text) RETURNS SETOF bytea
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM check_attempt(_by);
    RETURN QUERY SELECT data FROM blobs WHERE tenant = _by.tenant AND digest = _digest;
END $$;

CREATE FUNCTION finish_attempt(_by attempt_key, _outcome json) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE attempts SET state = o.state, outputs = o.outputs::json, failure = o.failure::json, finished_at = now()
    FROM json_to_record(_outcome) AS o(state text, outputs text, failure text)
    WHERE tenant = _by.tenant AND run = _by.run AND id = _by.attempt AND fence = _by.fence
      AND attempts.state = 'Open';
    IF NOT FOUND THEN
        RAISE 'superseded' USING ERRCODE = 'PH001';
    END IF;
    PERFORM pg_notify('pilothouse', _by.tenant || '/' || _by.run);
END $$;
