-- name: count_events
UPDATE runs SET event_seq = event_seq + %(events)s WHERE tenant = %(tenant)s AND id = %(run)s
RETURNING pg_notify('pilothouse', tenant || '/' || id);

-- name: hold_attempt
SELECT FROM attempts
WHERE tenant = %(tenant)s AND run = %(run)s AND id = %(attempt)s AND fence = %(fence)s AND state = 'Open'
FOR SHARE;

-- name: check_attempt
SELECT FROM attempts
WHERE tenant = %(tenant)s AND run = %(run)s AND id = %(attempt)s AND fence = %(fence)s AND state = 'Open';

-- name: finish_attempt
UPDATE attempts SET
    state = %(state)s, outputs = %(outputs)s::json, failure = %(failure)s::json, finished_at = now()
WHERE tenant = %(tenant)s AND run = %(run)s AND id = %(attempt)s AND fence = %(fence)s AND state = 'Open'
RETURNING pg_notify('pilothouse', tenant || '/' || run);

-- name: ensure_session
INSERT INTO sessions (tenant, id, run) VALUES (%(tenant)s, %(session)s, %(run)s)
ON CONFLICT (tenant, id) DO NOTHING;

-- name: find_session
SELECT * FROM sessions WHERE tenant = %(tenant)s AND id = %(session)s AND run = %(run)s;

-- name: list_entries
SELECT * FROM entries WHERE tenant = %(tenant)s AND session = %(session)s ORDER BY seq;

-- name: move_leaf
UPDATE sessions SET leaf = %(new_leaf)s, entry_seq = entry_seq + %(entries)s
WHERE tenant = %(tenant)s AND id = %(session)s AND run = %(run)s AND leaf IS NOT DISTINCT FROM %(leaf)s;

-- name: insert_entries
INSERT INTO entries (tenant, session, id, parent, seq, type, body, attempt)
SELECT s.tenant, s.id, e.id, e.parent, s.entry_seq - %(entries)s + e.place, e.type, e.body::json, %(attempt)s
FROM sessions s, unnest(%(ids)s::uuid[], %(parents)s::uuid[], %(types)s::text[], %(bodies)s::text[])
     WITH ORDINALITY AS e(id, parent, type, body, place)
WHERE s.tenant = %(tenant)s AND s.id = %(session)s
ON CONFLICT (tenant, session, id) DO NOTHING
RETURNING *;

-- name: find_entry
SELECT FROM entries WHERE tenant = %(tenant)s AND session = %(session)s AND id = %(entry)s;

-- name: list_tool_calls
SELECT * FROM tool_calls
WHERE tenant = %(tenant)s AND session = %(session)s AND turn = %(turn)s ORDER BY ordinal;

-- name: intend
INSERT INTO tool_calls AS t (tenant, session, turn, ordinal, call, tool, arguments, digest, idempotent,
                             attempt, intended_at)
VALUES (%(tenant)s, %(session)s, %(turn)s, %(ordinal)s, %(call)s, %(tool)s, %(arguments)b, %(digest)s,
        %(idempotent)s, %(attempt)s, now())
ON CONFLICT (tenant, session, turn, ordinal) DO UPDATE
SET attempt = excluded.attempt, intended_at = excluded.intended_at
WHERE t.result IS NULL AND t.idempotent AND excluded.idempotent
  AND (t.call, t.tool, t.digest) = (excluded.call, excluded.tool, excluded.digest)
RETURNING *;

-- name: record
UPDATE tool_calls SET result = %(result)s::json, is_error = %(is_error)s, finished_at = now()
WHERE tenant = %(tenant)s AND session = %(session)s AND turn = %(turn)s AND ordinal = %(ordinal)s
  AND NOT pending AND result IS NULL
RETURNING *;

-- name: find_tool_call
SELECT FROM tool_calls
WHERE tenant = %(tenant)s AND session = %(session)s AND turn = %(turn)s AND ordinal = %(ordinal)s;

-- name: put_blob
INSERT INTO blobs (tenant, digest, data) VALUES (%(tenant)s, %(digest)s, %(data)b)
ON CONFLICT (tenant, digest) DO NOTHING;

-- name: get_blob
SELECT data FROM blobs WHERE tenant = %(tenant)s AND digest = %(digest)s;
