-- name: lines
SELECT r.tenant, r.id, r.number, r.namespace, r.workflow, r.workflow_uid, r.run_key, r.state, r.shutdown, r.failure,
       r.created_at, r.deadline, r.finished_at, r.event_seq, r.leader_epoch, r.schema_version,
       '{}'::json AS closure, '{}'::json AS params, '{}'::json AS outputs, '{}'::json AS requests,
       now() AS now, s.steps, s.settled
FROM runs r CROSS JOIN LATERAL (
    SELECT count(*) AS steps, count(*) FILTER (WHERE state <> ALL (%(open)s::text[])) AS settled
    FROM steps WHERE tenant = r.tenant AND run = r.id
) s
WHERE r.tenant = %(tenant)s AND r.namespace = %(namespace)s
  AND (%(workflow)s::text IS NULL OR r.workflow = %(workflow)s)
  AND (%(number)s::bigint IS NULL OR r.number = %(number)s)
  AND r.id BETWEEN %(first)s AND %(last)s
  AND (%(before)s::uuid IS NULL OR (r.created_at, r.number, r.id) <
       (SELECT created_at, number, id FROM runs WHERE tenant = %(tenant)s AND id = %(before)s))
ORDER BY r.created_at DESC, r.number DESC, r.id DESC LIMIT %(limit)s;

-- name: head
SELECT tenant, id, number, namespace, workflow, workflow_uid, run_key, state, shutdown, failure,
       created_at, deadline, finished_at, event_seq, leader_epoch, schema_version,
       '{}'::json AS closure, '{}'::json AS params, '{}'::json AS outputs, '{}'::json AS requests
FROM runs WHERE tenant = %(tenant)s AND id = %(run)s AND namespace = %(namespace)s;

-- name: snapshot
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SELECT now() AS now;
SELECT tenant, id, number, namespace, workflow, workflow_uid, run_key, state, shutdown, failure,
       created_at, deadline, finished_at, event_seq, leader_epoch, schema_version, params, outputs,
       '{}'::json AS closure, '{}'::json AS requests
FROM runs WHERE tenant = %(tenant)s AND id = %(run)s;
SELECT path, index, kind, state, attempts, restarts, fence, failure, started_at, finished_at, wake_at,
       '{}'::json AS outputs
FROM steps WHERE tenant = %(tenant)s AND run = %(run)s ORDER BY position OFFSET %(after)s LIMIT %(limit)s;
COMMIT;

-- name: attempts
SELECT tenant, run, id, path, index, number, restart, nonce, fence, call, state, failure, log, carrier,
       created_at, deadline, finished_at, '{}'::json AS outputs
FROM attempts WHERE tenant = %(tenant)s AND run = %(run)s
ORDER BY created_at, path, index, fence OFFSET %(after)s LIMIT %(limit)s;

-- name: attempt
SELECT tenant, run, id, path, index, number, restart, nonce, fence, call, state, failure, log, carrier,
       created_at, deadline, finished_at, '{}'::json AS outputs
FROM attempts WHERE tenant = %(tenant)s AND run = %(run)s AND id = %(attempt)s;

-- name: events
SELECT * FROM events WHERE tenant = %(tenant)s AND run = %(run)s AND seq > %(after)s
ORDER BY seq LIMIT %(limit)s;

-- name: sessions
SELECT s.id, s.leaf, s.entry_seq
FROM session_runs AS o JOIN sessions AS s ON s.tenant = o.tenant AND s.id = o.session
WHERE o.tenant = %(tenant)s AND o.run = %(run)s
ORDER BY o.opened_at, s.id OFFSET %(after)s LIMIT %(limit)s;

-- name: entries
SELECT id, parent, seq, type, attempt, at, size, CASE WHEN up_to_here <= %(size)s THEN body END AS body FROM (
    SELECT e.*, l.size, sum(l.size) OVER (ORDER BY e.seq) AS up_to_here
    FROM entries e JOIN session_runs o ON o.tenant = e.tenant AND o.session = e.session
    CROSS JOIN LATERAL (SELECT octet_length(e.type) + octet_length(e.body::text) AS size) l
    WHERE o.tenant = %(tenant)s AND o.run = %(run)s AND o.session = %(session)s
      AND e.seq > %(after)s AND e.seq <= %(after)s + %(limit)s
) found WHERE up_to_here - size <= %(size)s ORDER BY seq;

-- name: blob_size
SELECT length(data) AS size FROM blobs WHERE tenant = %(tenant)s AND digest = %(digest)s;

-- name: blob_piece
SELECT substring(data FROM %(start)s + 1 FOR %(length)s) AS piece
FROM blobs WHERE tenant = %(tenant)s AND digest = %(digest)s;
