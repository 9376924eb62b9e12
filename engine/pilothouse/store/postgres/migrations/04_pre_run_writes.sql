-- The writes to a run: one function each, called as one statement, so that one call is one transaction.
--
-- A guard that does not hold raises SQLSTATE PH001. The message names the refusal; the detail, where there is one, says
-- of which item. Nothing of the call is written then.
--
-- Rows come as JSON: objects by column, each with its `place` in its list, from 0. What is to stand in a json column is
-- a string in there. For as a value, a NUL character or a lone surrogate deep inside it would make the server refuse the
-- whole list; as a string, it is text that nobody looks into until it is cast.
--
-- Rows are locked in one order: the run, its attempt, the session. Notifications carry ids, never data.

-- The counter on the run's row, which the caller has locked, stood at `_before` and was advanced for these events.
CREATE FUNCTION write_events(_tenant uuid, _run uuid, _before bigint, _events json) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO events (tenant, run, seq, type, path, index, data)
    SELECT _tenant, _run, _before + 1 + e.place, e.type, e.path, e.index, e.data::json
    FROM json_to_recordset(_events) AS e(place integer, type text, path text, index integer, data text);
    PERFORM pg_notify('pilothouse', _tenant || '/' || _run);
END $$;

CREATE FUNCTION create_run(_run json, _steps json, _events json) RETURNS SETOF runs
LANGUAGE plpgsql AS $$
DECLARE
    given     record;
    newest_no integer;
BEGIN
    SELECT * INTO given FROM json_to_record(_run) AS (
        tenant uuid, id uuid, namespace text, workflow text, workflow_uid uuid, run_key text, closure text, params text,
        schema_version integer, deadline_seconds float8
    );
    INSERT INTO run_numbers AS n (tenant, workflow, newest) VALUES (given.tenant, given.workflow, 1)
    ON CONFLICT (tenant, workflow) DO UPDATE SET newest = n.newest + 1
    RETURNING newest INTO newest_no;

    INSERT INTO runs (tenant, id, number, namespace, workflow, workflow_uid, run_key, closure, params, schema_version,
                      deadline, event_seq)
    VALUES (given.tenant, given.id, newest_no, given.namespace, given.workflow, given.workflow_uid, given.run_key,
            given.closure::json, given.params::json, given.schema_version,
            now() + make_interval(secs => given.deadline_seconds), json_array_length(_events))
    ON CONFLICT (tenant, id) DO NOTHING;
    IF NOT FOUND THEN
        RAISE 'run_there' USING ERRCODE = 'PH001';  -- and the number is not used up
    END IF;

    INSERT INTO steps (tenant, run, path, index, position, kind)
    SELECT given.tenant, given.id, s.path, s.index, s.place, s.kind
    FROM json_to_recordset(_steps) AS s(place integer, path text, index integer, kind text);
    PERFORM write_events(given.tenant, given.id, 0, _events);
    RETURN QUERY SELECT * FROM runs WHERE tenant = given.tenant AND id = given.id;
END $$;

CREATE FUNCTION request_shutdown(_tenant uuid, _run uuid, _verb text, _weaker json, _events json) RETURNS SETOF runs
LANGUAGE plpgsql AS $$
DECLARE
    before bigint;
BEGIN
    UPDATE runs SET shutdown = _verb, event_seq = event_seq + json_array_length(_events)
    WHERE tenant = _tenant AND id = _run AND state = 'Running'
      AND (shutdown IS NULL OR shutdown IN (SELECT json_array_elements_text(_weaker)))
    RETURNING event_seq - json_array_length(_events) INTO before;
    IF FOUND THEN
        PERFORM write_events(_tenant, _run, before, _events);
    END IF;
    RETURN QUERY SELECT * FROM runs WHERE tenant = _tenant AND id = _run;
END $$;

CREATE FUNCTION change_steps(_tenant uuid, _run uuid, _changes json) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    change record;
BEGIN
    FOR change IN
        SELECT * FROM json_to_recordset(_changes) AS (
            place integer, path text, index integer, expect text[], fence bigint, state text, final boolean,
            outputs text, failure text, wake_in float8
        )
    LOOP
        UPDATE steps SET
            state = change.state,
            outputs = change.outputs::json,
            failure = change.failure::json,
            started_at = coalesce(started_at, CASE WHEN change.state IN ('Running', 'Succeeded') THEN now() END),
            finished_at = CASE WHEN change.final THEN now() END,
            wake_at = now() + make_interval(secs => change.wake_in)
        WHERE tenant = _tenant AND run = _run AND path = change.path AND index = change.index
          AND state = ANY (change.expect) AND (change.fence IS NULL OR fence = change.fence);
        IF NOT FOUND THEN
            RAISE 'step' USING ERRCODE = 'PH001', DETAIL = change.place;
        END IF;
    END LOOP;
END $$;

CREATE FUNCTION close_attempts(_tenant uuid, _run uuid, _closings json) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    closing record;
BEGIN
    FOR closing IN
        SELECT * FROM json_to_recordset(_closings) AS (
            place integer, id uuid, fence bigint, state text, outputs text, failure text, log text
        )
    LOOP
        UPDATE attempts SET
            state = closing.state,
            outputs = closing.outputs::json,
            failure = closing.failure::json,
            log = closing.log::json,
            finished_at = now()
        WHERE tenant = _tenant AND run = _run AND id = closing.id AND fence = closing.fence AND state = 'Open';
        IF NOT FOUND THEN
            RAISE 'closing' USING ERRCODE = 'PH001', DETAIL = closing.place;
        END IF;
    END LOOP;
END $$;

CREATE FUNCTION open_attempts(_tenant uuid, _run uuid, _openings json) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    opening record;
BEGIN
    FOR opening IN
        SELECT * FROM json_to_recordset(_openings) AS (
            place integer, path text, index integer, id uuid, after bigint, number integer, restart integer,
            nonce text, timeout float8
        )
    LOOP
        UPDATE steps AS s SET fence = fence + 1, attempts = opening.number, restarts = opening.restart
        WHERE tenant = _tenant AND run = _run AND path = opening.path AND index = opening.index
          AND fence = opening.after
          AND NOT EXISTS (
              SELECT FROM attempts AS a
              WHERE a.tenant = s.tenant AND a.run = s.run AND a.path = s.path AND a.index = s.index
                AND a.call IS NULL AND a.state = 'Open'
          );
        IF FOUND THEN
            INSERT INTO attempts (tenant, run, path, index, fence, id, number, restart, nonce, deadline)
            VALUES (_tenant, _run, opening.path, opening.index, opening.after + 1, opening.id, opening.number,
                    opening.restart, opening.nonce, now() + make_interval(secs => opening.timeout))
            ON CONFLICT (tenant, run, id) DO NOTHING;
        END IF;
        IF NOT FOUND THEN
            RAISE 'opening' USING ERRCODE = 'PH001', DETAIL = opening.place;
        END IF;
    END LOOP;
END $$;

CREATE FUNCTION close_run(_tenant uuid, _run uuid, _closing json) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE runs SET state = c.state, outputs = c.outputs::json, failure = c.failure::json, finished_at = now()
    FROM json_to_record(_closing) AS c(state text, outputs text, failure text)
    WHERE tenant = _tenant AND id = _run AND runs.state = 'Running';
    IF NOT FOUND THEN
        RAISE 'run' USING ERRCODE = 'PH001';
    END IF;
END $$;

-- The run's row comes first: it makes transitions and the events of attempts queue up.
CREATE FUNCTION commit_transition(
    _tenant uuid, _run uuid, _epoch bigint, _steps json, _closings json, _openings json, _closing json, _events json
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    before bigint;
BEGIN
    UPDATE runs SET leader_epoch = _epoch, event_seq = event_seq + json_array_length(_events)
    WHERE tenant = _tenant AND id = _run AND leader_epoch <= _epoch
    RETURNING event_seq - json_array_length(_events) INTO before;
    IF NOT FOUND THEN
        PERFORM FROM runs WHERE tenant = _tenant AND id = _run;
        RAISE '%', CASE WHEN FOUND THEN 'deposed' ELSE 'no_run' END USING ERRCODE = 'PH001';
    END IF;
    PERFORM change_steps(_tenant, _run, _steps);
    PERFORM close_attempts(_tenant, _run, _closings);
    PERFORM open_attempts(_tenant, _run, _openings);
    IF _closing IS NOT NULL THEN
        PERFORM close_run(_tenant, _run, _closing);
    END IF;
    PERFORM write_events(_tenant, _run, before, _events);
END $$;
