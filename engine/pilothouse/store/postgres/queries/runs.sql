-- name: installation
SELECT id FROM installation;

-- name: lock_leadership
SELECT pg_try_advisory_lock(hashtextextended('pilothouse lead ' || %(scope)s::text, 0)) AS held;

-- name: next_epoch
INSERT INTO leaders (scope, epoch) VALUES (%(scope)s, nextval('leader_epochs'))
ON CONFLICT (scope) DO UPDATE SET epoch = excluded.epoch, since = now()
RETURNING epoch;

-- name: find_run
SELECT * FROM runs WHERE tenant = %(tenant)s AND id = %(run)s;

-- name: insert_run
WITH counted AS (
    INSERT INTO run_numbers AS n (tenant, workflow, newest) VALUES (%(tenant)s, %(workflow)s, 1)
    ON CONFLICT (tenant, workflow) DO UPDATE SET newest = n.newest + 1
    RETURNING newest
)
INSERT INTO runs (tenant, id, number, namespace, workflow, workflow_uid, run_key, closure, params,
                  schema_version, deadline, event_seq)
SELECT %(tenant)s, %(id)s, newest, %(namespace)s, %(workflow)s, %(workflow_uid)s, %(run_key)s,
       %(closure)s::json, %(params)s::json, %(schema_version)s,
       now() + make_interval(secs => %(deadline_seconds)s::float8), 1
FROM counted
ON CONFLICT (tenant, id) DO NOTHING
RETURNING *;

-- name: insert_steps
INSERT INTO steps (tenant, run, path, index, position, kind)
SELECT %(tenant)s, %(run)s, s.*
FROM unnest(%(paths)s::text[], %(indexes)s::integer[], %(positions)s::integer[], %(kinds)s::text[]) AS s;

-- name: snapshot_steps
SELECT * FROM steps WHERE tenant = %(tenant)s AND run = %(run)s ORDER BY position;

-- name: snapshot_attempts
SELECT a.* FROM attempts a JOIN steps s USING (tenant, run, path, index, fence)
WHERE a.tenant = %(tenant)s AND a.run = %(run)s AND a.call IS NULL
ORDER BY s.position;

-- name: now
SELECT now() AS now;

-- name: shut_down
WITH asked AS (
    UPDATE runs SET shutdown = %(verb)s, event_seq = event_seq + 1
    WHERE tenant = %(tenant)s AND id = %(run)s AND state = 'Running'
      AND (shutdown IS NULL OR shutdown = ANY(%(weaker)s))
    RETURNING tenant, id, event_seq
), told AS (
    INSERT INTO events (tenant, run, seq, type, data)
    SELECT tenant, id, event_seq, %(type)s, %(data)s::json FROM asked
)
SELECT pg_notify('pilothouse', tenant || '/' || id) FROM asked;

-- name: list_runs
SELECT * FROM runs
WHERE (%(tenant)s::uuid IS NULL OR tenant = %(tenant)s)
  AND (%(workflow)s::text IS NULL OR workflow = %(workflow)s)
ORDER BY created_at DESC, number DESC LIMIT %(limit)s;

-- name: list_unfinished_runs
SELECT * FROM runs
WHERE (%(tenant)s::uuid IS NULL OR tenant = %(tenant)s)
  AND (%(workflow)s::text IS NULL OR workflow = %(workflow)s)
  AND state = 'Running'
ORDER BY created_at DESC, number DESC LIMIT %(limit)s;

-- name: list_attempts
SELECT * FROM attempts WHERE tenant = %(tenant)s AND run = %(run)s
ORDER BY created_at, path, index, fence;

-- name: list_events
SELECT * FROM events WHERE tenant = %(tenant)s AND run = %(run)s AND seq > %(after)s
ORDER BY seq LIMIT %(limit)s;

-- name: list_sessions
SELECT * FROM sessions WHERE tenant = %(tenant)s AND run = %(run)s ORDER BY created_at, id;

-- name: list_run_entries
SELECT e.* FROM entries e JOIN sessions s ON s.tenant = e.tenant AND s.id = e.session
WHERE s.tenant = %(tenant)s AND s.run = %(run)s ORDER BY e.seq;
