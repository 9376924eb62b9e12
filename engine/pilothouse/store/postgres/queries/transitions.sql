-- The parts of a transition. `advance` comes first: it locks the run, so that transitions queue up.
-- Notifications carry ids, never data, and are sent when the transaction commits.

-- name: advance
UPDATE runs SET event_seq = event_seq + %(events)s, leader_epoch = %(epoch)s
WHERE tenant = %(tenant)s AND id = %(run)s AND leader_epoch <= %(epoch)s
RETURNING pg_notify('pilothouse', tenant || '/' || id);

-- name: change_step
UPDATE steps SET
    state = %(state)s,
    outputs = %(outputs)s::json,
    failure = %(failure)s::json,
    started_at = CASE WHEN %(state)s = 'Running' THEN coalesce(started_at, now()) ELSE started_at END,
    finished_at = CASE WHEN %(final)s THEN now() END,
    wake_at = now() + make_interval(secs => %(wake_in)s::float8)
WHERE tenant = %(tenant)s AND run = %(run)s AND path = %(path)s AND index = %(index)s
  AND state = ANY(%(expect)s) AND (%(fence)s::bigint IS NULL OR fence = %(fence)s);

-- name: close_attempt
UPDATE attempts SET
    state = %(state)s, outputs = %(outputs)s::json, failure = %(failure)s::json, log = %(log)s::json,
    finished_at = now()
WHERE tenant = %(tenant)s AND run = %(run)s AND id = %(id)s AND fence = %(fence)s AND state = 'Open';

-- name: open_attempt
WITH fenced AS (
    UPDATE steps s SET fence = fence + 1, attempts = %(number)s, restarts = %(restart)s
    WHERE tenant = %(tenant)s AND run = %(run)s AND path = %(path)s AND index = %(index)s AND fence = %(after)s
      AND NOT EXISTS (
          SELECT FROM attempts a
          WHERE a.tenant = s.tenant AND a.run = s.run AND a.path = s.path AND a.index = s.index
            AND a.call IS NULL AND a.state = 'Open')
    RETURNING tenant, run, path, index, fence
)
INSERT INTO attempts (tenant, run, path, index, fence, id, number, restart, nonce, deadline)
SELECT tenant, run, path, index, fence, %(id)s, %(number)s, %(restart)s, %(nonce)s,
       now() + make_interval(secs => %(timeout)s::float8)
FROM fenced
ON CONFLICT (tenant, run, id) DO NOTHING;

-- name: close_run
UPDATE runs SET state = %(state)s, outputs = %(outputs)s::json, failure = %(failure)s::json, finished_at = now()
WHERE tenant = %(tenant)s AND id = %(run)s AND state = 'Running';

-- name: insert_events
INSERT INTO events (tenant, run, seq, type, path, index, data)
SELECT r.tenant, r.id, r.event_seq - %(events)s + e.place, e.type, e.path, e.index, e.data::json
FROM runs r, unnest(%(types)s::text[], %(paths)s::text[], %(indexes)s::integer[], %(datas)s::text[])
     WITH ORDINALITY AS e(type, path, index, data, place)
WHERE r.tenant = %(tenant)s AND r.id = %(run)s;
