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

-- name: list_runs
SELECT * FROM runs
WHERE (%(tenant)s::uuid IS NULL OR tenant = %(tenant)s)
  AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
  AND (%(workflow)s::text IS NULL OR workflow = %(workflow)s)
ORDER BY created_at DESC, number DESC LIMIT %(limit)s;

-- name: list_unfinished_runs
SELECT * FROM runs
WHERE (%(tenant)s::uuid IS NULL OR tenant = %(tenant)s)
  AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
  AND (%(workflow)s::text IS NULL OR workflow = %(workflow)s)
  AND state = 'Running'
ORDER BY created_at DESC, number DESC LIMIT %(limit)s;

-- name: name_runs
SELECT tenant, id, number, namespace, workflow FROM runs
WHERE (%(tenant)s::uuid IS NULL OR tenant = %(tenant)s)
  AND (%(workflow)s::text IS NULL OR workflow = %(workflow)s)
ORDER BY created_at DESC, number DESC LIMIT %(limit)s;

-- name: name_unfinished_runs
SELECT tenant, id, number, namespace, workflow FROM runs
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
SELECT e.* FROM session_runs AS o JOIN session_entries AS e ON e.tenant = o.tenant AND e.session = o.session
WHERE o.tenant = %(tenant)s AND o.run = %(run)s ORDER BY o.opened_at, o.session;

-- name: create_run
SELECT * FROM create_run(%(new)s, %(steps)s, %(events)s);

-- name: request_shutdown
SELECT * FROM request_shutdown(%(tenant)s, %(run)s, %(verb)s, %(weaker)s, %(events)s);

-- name: commit_transition
SELECT commit_transition(
    %(tenant)s, %(run)s, %(epoch)s, %(steps)s, %(closings)s, %(openings)s, %(closing)s, %(events)s
);

-- name: put_blob
INSERT INTO blobs (tenant, digest, data) VALUES (%(tenant)s, %(digest)s, %(data)b)
ON CONFLICT (tenant, digest) DO NOTHING;

-- name: get_blob
SELECT data FROM blobs WHERE tenant = %(tenant)s AND digest = %(digest)s;

-- name: snapshot
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SELECT now() AS now;
SELECT * FROM runs WHERE tenant = %(tenant)s AND id = %(run)s;
SELECT * FROM steps WHERE tenant = %(tenant)s AND run = %(run)s ORDER BY position;
SELECT a.* FROM attempts a JOIN steps s USING (tenant, run, path, index, fence)
WHERE a.tenant = %(tenant)s AND a.run = %(run)s AND a.call IS NULL
ORDER BY s.position;
COMMIT;

-- name: token_key
SELECT token_key FROM installation;

-- name: epoch_of
SELECT epoch FROM leaders WHERE scope = %(scope)s;

-- name: carry
SELECT carry_attempt(%(tenant)s, %(run)s, %(epoch)s, %(attempt)s, %(fence)s, %(carrier)s);

-- name: carried
SELECT a.* FROM attempts a JOIN runs r ON r.tenant = a.tenant AND r.id = a.run
WHERE a.carrier = %(carrier)s AND r.namespace = %(namespace)s;
