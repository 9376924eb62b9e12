-- Messages that wait for an agent, and sessions that pass from attempt to attempt and, by their name, from run to run.
--
-- Rows are locked in the order of the other writes: the attempt, then the session. `enqueue` alone goes the other way, and
-- shares the attempt: who ends an attempt never waits for a session. All that changes a queue locks its session.

-- `holder` may read and write the session. It is null where no attempt has opened it since this file was applied; those of
-- its run that were open then go on as they did. A session has either a run or a name. There is no CHECK of that, for every
-- turn updates the row, and would check it each time.
ALTER TABLE sessions
    ALTER COLUMN run DROP NOT NULL,
    ADD COLUMN name       text,
    ADD COLUMN holder_run uuid,
    ADD COLUMN holder     uuid;
CREATE INDEX sessions_newest ON sessions (tenant, created_at DESC, id DESC);

CREATE TABLE session_runs (
    tenant    uuid        NOT NULL,
    session   uuid        NOT NULL,
    run       uuid        NOT NULL,
    opened_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, session, run),
    FOREIGN KEY (tenant, session) REFERENCES sessions ON DELETE CASCADE,
    FOREIGN KEY (tenant, run) REFERENCES runs ON DELETE CASCADE
);
CREATE INDEX session_runs_of_run ON session_runs (tenant, run, opened_at);
INSERT INTO session_runs SELECT tenant, id, run, created_at FROM sessions;

-- Kept after its delivery, so that the same message is accepted once. `clearing` names the abort that took it back.
CREATE TABLE queue_items (
    tenant   uuid        NOT NULL,
    session  uuid        NOT NULL,
    id       uuid        NOT NULL,
    seq      bigint      NOT NULL,
    queue    text        NOT NULL CHECK (queue IN ('steer', 'followUp', 'nextTurn')),
    message  json        NOT NULL,
    state    text        NOT NULL DEFAULT 'Waiting' CHECK (state IN ('Waiting', 'Delivered', 'Cancelled')),
    clearing uuid,
    at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, session, id),
    UNIQUE (tenant, session, seq),
    FOREIGN KEY (tenant, session) REFERENCES sessions ON DELETE CASCADE
);
CREATE INDEX queue_items_waiting ON queue_items (tenant, session, seq) WHERE state = 'Waiting';

-- What a turn waits for has this spelled out: a call takes longer than all that it does.
CREATE FUNCTION holds(_by attempt_key, _held sessions) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN _held.holder IS NULL THEN _held.run = _by.run
                ELSE _held.holder = _by.attempt AND _held.holder_run = _by.run END
$$;

CREATE OR REPLACE FUNCTION check_session(_by attempt_key, _session uuid) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM sessions
    WHERE tenant = _by.tenant AND id = _session
      AND CASE WHEN holder IS NULL THEN run = _by.run ELSE holder = _by.attempt AND holder_run = _by.run END;
    IF NOT FOUND THEN
        RAISE 'no_session' USING ERRCODE = 'PH001';
    END IF;
END $$;

-- Makes the attempt the holder, and the session where it is not there. That a holder is over never changes again, so its row
-- need not be locked for that.
CREATE FUNCTION hold_session(_by attempt_key, _session uuid, _name text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    held sessions;
BEGIN
    PERFORM hold_attempt(_by, '[]');
    INSERT INTO sessions (tenant, id, run, name)
    VALUES (_by.tenant, _session, CASE WHEN _name IS NULL THEN _by.run END, _name)
    ON CONFLICT (tenant, id) DO NOTHING;
    SELECT * INTO held FROM sessions WHERE tenant = _by.tenant AND id = _session FOR NO KEY UPDATE;
    IF held.holder = _by.attempt AND held.holder_run = _by.run THEN
        RETURN;
    END IF;
    IF held.run IS DISTINCT FROM _by.run AND (held.name = _name) IS NOT TRUE THEN
        RAISE 'foreign_session' USING ERRCODE = 'PH001';
    END IF;
    PERFORM FROM attempts
    WHERE tenant = _by.tenant AND run = held.holder_run AND id = held.holder AND state = 'Open';
    IF FOUND THEN
        RAISE 'busy' USING ERRCODE = 'PH001';
    END IF;
    UPDATE sessions SET holder_run = _by.run, holder = _by.attempt WHERE tenant = _by.tenant AND id = _session;
    INSERT INTO session_runs (tenant, session, run) VALUES (_by.tenant, _session, _by.run) ON CONFLICT DO NOTHING;
END $$;

DROP FUNCTION open_session(attempt_key, uuid);
CREATE FUNCTION open_session(_by attempt_key, _session uuid, _name text DEFAULT NULL) RETURNS SETOF session_entries
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM hold_session(_by, _session, _name);
    RETURN QUERY SELECT * FROM session_entries WHERE tenant = _by.tenant AND session = _session;
END $$;

DROP FUNCTION session_page(attempt_key, uuid, bigint, bigint);
CREATE FUNCTION session_page(_by attempt_key, _session uuid, _after bigint, _size bigint, _name text DEFAULT NULL)
RETURNS TABLE (id uuid, parent uuid, seq bigint, type text, body json, attempt uuid, at timestamptz, leaf uuid, next bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    entry   entries;
    entered bigint;
BEGIN
    IF _after = 0 THEN
        PERFORM hold_session(_by, _session, _name);
    ELSE
        PERFORM check_attempt(_by);
    END IF;
    -- Both change together, so up to there the entries are those that belong to this leaf.
    SELECT s.leaf, s.entry_seq INTO session_page.leaf, entered
    FROM sessions AS s WHERE s.tenant = _by.tenant AND s.id = _session AND holds(_by, s);
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

-- Returns the number of entries before these, the time that they bear, and whether any item waits. `_consumed` are the items of queues whose
-- messages these entries hold.
DROP FUNCTION append_entries(attempt_key, uuid, uuid, uuid, json, json, json);
CREATE FUNCTION append_entries(
    _by attempt_key, _session uuid, _leaf uuid, _new_leaf uuid, _entries json, _outcomes json, _events json,
    _consumed uuid[] DEFAULT '{}', OUT before bigint, OUT written_at timestamptz, OUT waiting boolean
)
LANGUAGE plpgsql AS $$
DECLARE
    entry record;
    taken integer;
BEGIN
    PERFORM hold_attempt(_by, _events);
    UPDATE sessions AS s SET leaf = _new_leaf, entry_seq = entry_seq + json_array_length(_entries)
    WHERE s.tenant = _by.tenant AND s.id = _session AND leaf IS NOT DISTINCT FROM _leaf
      AND CASE WHEN holder IS NULL THEN run = _by.run ELSE holder = _by.attempt AND holder_run = _by.run END
    RETURNING entry_seq - json_array_length(_entries) INTO before;
    IF NOT FOUND THEN
        PERFORM check_session(_by, _session);
        RAISE 'leaf_moved' USING ERRCODE = 'PH001';
    END IF;
    IF cardinality(_consumed) > 0 THEN
        UPDATE queue_items SET state = 'Delivered'
        WHERE tenant = _by.tenant AND session = _session AND id = ANY (_consumed) AND state = 'Waiting';
        GET DIAGNOSTICS taken = ROW_COUNT;
        IF taken < cardinality(_consumed) THEN
            RAISE 'items_gone' USING ERRCODE = 'PH001';
        END IF;
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
    waiting := EXISTS (
        SELECT FROM queue_items WHERE tenant = _by.tenant AND session = _session AND state = 'Waiting'
    );
END $$;

-- A page, as the functions before this one give it, of what waits; or where `_clearing` is given, of what was taken back
-- under that id: the first page takes back what waits in `_queues`.
CREATE FUNCTION queue_page(
    _by attempt_key, _session uuid, _clearing uuid, _queues text[], _after bigint, _size bigint
)
RETURNS TABLE (id uuid, seq bigint, queue text, message json, at timestamptz, next bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    item queue_items;
BEGIN
    IF _clearing IS NOT NULL AND _after = 0 THEN
        PERFORM hold_attempt(_by, '[]');
        PERFORM FROM sessions AS s WHERE s.tenant = _by.tenant AND s.id = _session AND holds(_by, s) FOR NO KEY UPDATE;
        UPDATE queue_items AS q SET state = 'Cancelled', clearing = _clearing
        WHERE q.tenant = _by.tenant AND q.session = _session AND q.queue = ANY (_queues) AND q.state = 'Waiting';
    ELSE
        PERFORM check_attempt(_by);
    END IF;
    PERFORM check_session(_by, _session);
    queue_page.next := 0;
    FOR item IN
        SELECT * FROM queue_items AS q
        WHERE q.tenant = _by.tenant AND q.session = _session AND q.seq > _after
          AND _clearing IS NULL AND q.state = 'Waiting'
        UNION ALL
        SELECT * FROM queue_items AS q
        WHERE q.tenant = _by.tenant AND q.session = _session AND q.seq > _after AND q.clearing = _clearing
        ORDER BY seq
    LOOP
        queue_page.next := octet_length(item.queue) + octet_length(item.message::text);
        _size := _size - queue_page.next;
        EXIT WHEN _size < 0;
        queue_page.next := 0;
        RETURN QUERY SELECT item.id, item.seq, item.queue, item.message, item.at, NULL::bigint;
    END LOOP;
    RETURN QUERY SELECT NULL::uuid, NULL::bigint, NULL::text, NULL::json, NULL::timestamptz, queue_page.next;
END $$;

-- Whoever enqueues shares the attempt's row until its item is there, so an attempt that succeeds sees it here, or was over
-- before that.
CREATE OR REPLACE FUNCTION finish_attempt(_by attempt_key, _outcome json) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    ended text;
BEGIN
    UPDATE attempts SET state = o.state, outputs = o.outputs::json, failure = o.failure::json, finished_at = now()
    FROM json_to_record(_outcome) AS o(state text, outputs text, failure text)
    WHERE tenant = _by.tenant AND run = _by.run AND id = _by.attempt AND fence = _by.fence
      AND attempts.state = 'Open'
    RETURNING attempts.state INTO ended;
    IF NOT FOUND THEN
        RAISE 'superseded' USING ERRCODE = 'PH001';
    END IF;
    IF ended = 'Succeeded' THEN
        PERFORM FROM session_runs AS o
        JOIN sessions AS s ON s.tenant = o.tenant AND s.id = o.session
        JOIN queue_items AS q ON q.tenant = s.tenant AND q.session = s.id
        WHERE o.tenant = _by.tenant AND o.run = _by.run AND s.holder_run = _by.run AND s.holder = _by.attempt
          AND q.state = 'Waiting' AND q.queue <> 'nextTurn';
        IF FOUND THEN
            RAISE 'queue_not_empty' USING ERRCODE = 'PH001';
        END IF;
    END IF;
    PERFORM pg_notify('pilothouse', _by.tenant || '/' || _by.run);
END $$;

-- From here on, what those do who are outside of every attempt.

CREATE FUNCTION lock_session(_tenant uuid, _session uuid) RETURNS sessions
LANGUAGE plpgsql AS $$
DECLARE
    locked sessions;
BEGIN
    SELECT * INTO locked FROM sessions WHERE tenant = _tenant AND id = _session FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE 'unknown_session' USING ERRCODE = 'PH001';
    END IF;
    RETURN locked;
END $$;

CREATE FUNCTION enqueue(_tenant uuid, _session uuid, _id uuid, _queue text, _message text) RETURNS SETOF queue_items
LANGUAGE plpgsql AS $$
DECLARE
    held sessions := lock_session(_tenant, _session);
    item queue_items;
BEGIN
    SELECT * INTO item FROM queue_items WHERE tenant = _tenant AND session = _session AND id = _id;
    IF NOT FOUND THEN
        IF _queue <> 'nextTurn' THEN
            PERFORM FROM attempts
            WHERE tenant = _tenant AND run = held.holder_run AND id = held.holder AND state = 'Open'
            FOR SHARE;
            IF NOT FOUND THEN
                RAISE 'not_at_work' USING ERRCODE = 'PH001';
            END IF;
        END IF;
        INSERT INTO queue_items (tenant, session, id, seq, queue, message)
        SELECT _tenant, _session, _id, 1 + coalesce(max(q.seq), 0), _queue, _message::json
        FROM queue_items AS q WHERE q.tenant = _tenant AND q.session = _session
        RETURNING * INTO item;
    ELSIF item.queue <> _queue OR item.message::text <> _message THEN
        RAISE 'item_there' USING ERRCODE = 'PH001';
    END IF;
    RETURN NEXT item;
END $$;

CREATE FUNCTION cancel_items(_tenant uuid, _session uuid, _ids uuid[]) RETURNS SETOF queue_items
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_session(_tenant, _session);
    UPDATE queue_items SET state = 'Cancelled'
    WHERE tenant = _tenant AND session = _session AND id = ANY (_ids) AND state = 'Waiting';
    RETURN QUERY
    SELECT * FROM queue_items
    WHERE tenant = _tenant AND session = _session AND id = ANY (_ids) AND state = 'Cancelled' ORDER BY seq;
END $$;

CREATE FUNCTION import_session(
    _tenant uuid, _session uuid, _name text, _leaf uuid, _attempt uuid, _entries json
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    written integer;
    astray  integer;
BEGIN
    INSERT INTO sessions (tenant, id, name, leaf, entry_seq)
    VALUES (_tenant, _session, _name, _leaf, json_array_length(_entries))
    ON CONFLICT (tenant, id) DO NOTHING;
    IF NOT FOUND THEN
        RAISE 'session_there' USING ERRCODE = 'PH001';
    END IF;
    INSERT INTO entries (tenant, session, id, parent, seq, type, body, attempt)
    SELECT _tenant, _session, e.id, e.parent, 1 + e.place, e.type, e.body::json, _attempt
    FROM json_to_recordset(_entries) AS e(place integer, id uuid, parent uuid, type text, body text)
    ON CONFLICT (tenant, session, id) DO NOTHING;
    GET DIAGNOSTICS written = ROW_COUNT;
    IF written < json_array_length(_entries) THEN
        RAISE 'entry_there' USING ERRCODE = 'PH001';
    END IF;
    SELECT min(e.place) INTO astray FROM json_to_recordset(_entries) AS e(place integer, target uuid)
    WHERE e.target IS NOT NULL AND NOT EXISTS (
        SELECT FROM entries AS t
        WHERE t.tenant = _tenant AND t.session = _session AND t.id = e.target AND t.seq <= 1 + e.place
    );
    IF astray IS NOT NULL THEN
        RAISE 'no_target' USING ERRCODE = 'PH001', DETAIL = astray;
    END IF;
END $$;
