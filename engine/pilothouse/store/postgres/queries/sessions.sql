-- name: list
SELECT s.tenant, s.id, s.name, s.leaf, s.entry_seq, s.created_at, s.holder_run, a.id AS holder, a.fence,
       coalesce(e.at, s.created_at) AS changed_at, q.waiting, r.id AS run, r.number, r.namespace, r.workflow
FROM sessions AS s
LEFT JOIN attempts AS a ON a.tenant = s.tenant AND a.run = s.holder_run AND a.id = s.holder AND a.state = 'Open'
LEFT JOIN entries AS e ON e.tenant = s.tenant AND e.session = s.id AND e.seq = s.entry_seq
LEFT JOIN LATERAL (
    SELECT json_object_agg(queue, items) AS waiting FROM (
        SELECT queue, count(*) AS items FROM queue_items
        WHERE tenant = s.tenant AND session = s.id AND state = 'Waiting' GROUP BY queue
    ) AS of_each
) AS q ON true
LEFT JOIN LATERAL (
    SELECT r.id, r.number, r.namespace, r.workflow
    FROM session_runs AS o JOIN runs AS r ON r.tenant = o.tenant AND r.id = o.run
    WHERE o.tenant = s.tenant AND o.session = s.id
    ORDER BY r.created_at DESC, r.number DESC, r.id DESC LIMIT 1
) AS r ON true
WHERE s.tenant = %(tenant)s AND s.id BETWEEN %(first)s AND %(last)s
  AND (%(before)s::uuid IS NULL OR (s.created_at, s.id) <
       (SELECT created_at, id FROM sessions WHERE tenant = %(tenant)s AND id = %(before)s))
ORDER BY s.created_at DESC, s.id DESC LIMIT %(limit)s;

-- name: entries
SELECT e.* FROM sessions AS s LEFT JOIN entries AS e ON e.tenant = s.tenant AND e.session = s.id AND e.seq > %(after)s
WHERE s.tenant = %(tenant)s AND s.id = %(session)s ORDER BY e.seq LIMIT %(limit)s;

-- name: entry_page
SELECT f.id, f.parent, f.seq, f.type, f.attempt, f.at, f.size, CASE WHEN f.up_to_here <= %(size)s THEN f.body END AS body
FROM sessions AS s LEFT JOIN (
    SELECT e.*, l.size, sum(l.size) OVER (ORDER BY e.seq) AS up_to_here
    FROM entries AS e CROSS JOIN LATERAL (SELECT octet_length(e.type) + octet_length(e.body::text) AS size) AS l
    WHERE e.tenant = %(tenant)s AND e.session = %(session)s AND e.seq > %(after)s AND e.seq <= %(after)s + %(limit)s
) AS f ON f.up_to_here - f.size <= %(size)s
WHERE s.tenant = %(tenant)s AND s.id = %(session)s ORDER BY f.seq;

-- name: queued
SELECT q.* FROM sessions AS s
LEFT JOIN queue_items AS q ON q.tenant = s.tenant AND q.session = s.id AND q.state = 'Waiting'
WHERE s.tenant = %(tenant)s AND s.id = %(session)s ORDER BY q.seq;

-- name: item_page
SELECT f.id, f.seq, f.queue, f.at, f.size, CASE WHEN f.up_to_here <= %(size)s THEN f.message END AS message
FROM sessions AS s LEFT JOIN (
    SELECT q.*, l.size, sum(l.size) OVER (ORDER BY q.seq) AS up_to_here
    FROM queue_items AS q CROSS JOIN LATERAL (SELECT octet_length(q.queue) + octet_length(q.message::text) AS size) AS l
    WHERE q.tenant = %(tenant)s AND q.session = %(session)s AND q.seq > %(after)s AND q.state = 'Waiting'
) AS f ON f.up_to_here - f.size <= %(size)s
WHERE s.tenant = %(tenant)s AND s.id = %(session)s ORDER BY f.seq;

-- name: enqueue
SELECT * FROM enqueue(%(tenant)s, %(session)s, %(id)s, %(queue)s, %(message)s);

-- name: cancel
SELECT * FROM cancel_items(%(tenant)s, %(session)s, %(ids)s::uuid[]);

-- name: cancelled_page
SELECT id, seq, queue, at, size, CASE WHEN up_to_here <= %(size)s THEN message END AS message FROM (
    SELECT q.*, l.size, sum(l.size) OVER (ORDER BY q.seq) AS up_to_here
    FROM cancel_items(%(tenant)s, %(session)s, %(ids)s::uuid[]) AS q
    CROSS JOIN LATERAL (SELECT octet_length(q.queue) + octet_length(q.message::text) AS size) AS l
    WHERE q.seq > %(after)s
) AS found WHERE up_to_here - size <= %(size)s ORDER BY seq;

-- name: import
SELECT import_session(%(tenant)s, %(session)s, %(name)s, %(leaf)s, %(attempt)s, %(entries)s);
