-- name: list
SELECT s.tenant, s.id, s.name, s.leaf, s.entry_seq, s.created_at, s.holder_run, a.id AS holder, a.fence
FROM sessions AS s
LEFT JOIN attempts AS a ON a.tenant = s.tenant AND a.run = s.holder_run AND a.id = s.holder AND a.state = 'Open'
WHERE s.tenant = %(tenant)s
  AND (%(before)s::uuid IS NULL OR (s.created_at, s.id) <
       (SELECT created_at, id FROM sessions WHERE tenant = %(tenant)s AND id = %(before)s))
ORDER BY s.created_at DESC, s.id DESC LIMIT %(limit)s;

-- name: entries
SELECT e.* FROM sessions AS s LEFT JOIN entries AS e ON e.tenant = s.tenant AND e.session = s.id AND e.seq > %(after)s
WHERE s.tenant = %(tenant)s AND s.id = %(session)s ORDER BY e.seq LIMIT %(limit)s;

-- name: queued
SELECT q.* FROM sessions AS s
LEFT JOIN queue_items AS q ON q.tenant = s.tenant AND q.session = s.id AND q.state = 'Waiting'
WHERE s.tenant = %(tenant)s AND s.id = %(session)s ORDER BY q.seq;

-- name: enqueue
SELECT * FROM enqueue(%(tenant)s, %(session)s, %(id)s, %(queue)s, %(message)s);

-- name: cancel
SELECT * FROM cancel_items(%(tenant)s, %(session)s, %(ids)s::uuid[]);

-- name: import
SELECT import_session(%(tenant)s, %(session)s, %(name)s, %(leaf)s, %(attempt)s, %(entries)s);
