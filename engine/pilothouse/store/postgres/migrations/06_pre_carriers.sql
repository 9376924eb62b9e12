-- What a cluster needs of the store: what carries an attempt out, why a run was made, and a key to sign with.

-- Known to one database alone; two gateways on the same database verify each other's tokens by it.
ALTER TABLE installation
    ADD COLUMN token_key bytea NOT NULL
    DEFAULT sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8'));

-- The verbs that had been asked of the Workflow when the run was made, each with the value that asked for it.
ALTER TABLE runs ADD COLUMN requests json NOT NULL DEFAULT '{}';

-- Recorded before it may begin its work: an attempt without a carrier provably never began.
ALTER TABLE attempts ADD COLUMN carrier text;
CREATE UNIQUE INDEX attempts_carrier ON attempts (carrier) WHERE carrier IS NOT NULL;

-- Steps may come settled: those that the run takes over from the one it repeats.
CREATE OR REPLACE FUNCTION create_run(_run json, _steps json, _events json) RETURNS SETOF runs
LANGUAGE plpgsql AS $$
DECLARE
    given     record;
    newest_no integer;
BEGIN
    SELECT * INTO given FROM json_to_record(_run) AS (
        tenant uuid, id uuid, namespace text, workflow text, workflow_uid uuid, run_key text, closure text, params text,
        requests text, schema_version integer, deadline_seconds float8
    );
    INSERT INTO run_numbers AS n (tenant, workflow, newest) VALUES (given.tenant, given.workflow, 1)
    ON CONFLICT (tenant, workflow) DO UPDATE SET newest = n.newest + 1
    RETURNING newest INTO newest_no;

    INSERT INTO runs (tenant, id, number, namespace, workflow, workflow_uid, run_key, closure, params, requests,
                      schema_version, deadline, event_seq)
    VALUES (given.tenant, given.id, newest_no, given.namespace, given.workflow, given.workflow_uid, given.run_key,
            given.closure::json, given.params::json, coalesce(given.requests, '{}')::json, given.schema_version,
            now() + make_interval(secs => given.deadline_seconds), json_array_length(_events))
    ON CONFLICT (tenant, id) DO NOTHING;
    IF NOT FOUND THEN
        RAISE 'run_there' USING ERRCODE = 'PH001';  -- and the number is not used up
    END IF;

    INSERT INTO steps (tenant, run, path, index, position, kind, state, outputs, finished_at)
    SELECT given.tenant, given.id, s.path, s.index, s.place, s.kind, coalesce(s.state, 'Pending'),
           coalesce(s.outputs, '{}')::json, CASE WHEN s.state IS NOT NULL AND s.state <> 'Pending' THEN now() END
    FROM json_to_recordset(_steps) AS s(place integer, path text, index integer, kind text, state text, outputs text);
    PERFORM write_events(given.tenant, given.id, 0, _events);
    RETURN QUERY SELECT * FROM runs WHERE tenant = given.tenant AND id = given.id;
END $$;

CREATE FUNCTION carry_attempt(_tenant uuid, _run uuid, _epoch bigint, _attempt uuid, _fence bigint, _carrier text)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE runs SET leader_epoch = _epoch WHERE tenant = _tenant AND id = _run AND leader_epoch <= _epoch;
    IF NOT FOUND THEN
        PERFORM FROM runs WHERE tenant = _tenant AND id = _run;
        RAISE '%', CASE WHEN FOUND THEN 'deposed' ELSE 'no_run' END USING ERRCODE = 'PH001';
    END IF;
    UPDATE attempts SET carrier = _carrier
    WHERE tenant = _tenant AND run = _run AND id = _attempt AND fence = _fence AND state = 'Open'
      AND (carrier IS NULL OR carrier = _carrier);
    IF NOT FOUND THEN
        RAISE 'carrier' USING ERRCODE = 'PH001';
    END IF;
END $$;
