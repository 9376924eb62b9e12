-- name: open_session
SELECT * FROM open_session(%(by)s, %(session)s, %(name)s);

-- name: session_page
SELECT * FROM session_page(%(by)s, %(session)s, %(after)s, %(size)s, %(name)s);

-- name: append_entries
SELECT * FROM append_entries(
    %(by)s, %(session)s, %(leaf)s, %(new_leaf)s, %(entries)s, %(outcomes)s, %(events)s, %(consumed)s::uuid[]
);

-- name: queue_page
SELECT * FROM queue_page(
    %(by)s, %(session)s, %(clearing)s, %(queues)s::text[], %(after)s, %(size)s
);

-- name: list_tool_calls
SELECT * FROM list_tool_calls(%(by)s, %(session)s, %(turn)s);

-- name: call_page
SELECT * FROM call_page(%(by)s, %(session)s, %(turn)s, %(after)s, %(size)s);

-- name: intend_call
SELECT intend_call(%(by)s, %(session)s, %(call)s, %(arguments)b, %(events)s) AS intended_at;

-- name: record_results
SELECT result FROM record_results(%(by)s, %(session)s, %(outcomes)s, %(events)s);

-- name: put_blob
SELECT put_blob(%(by)s, %(digest)s, %(data)b);

-- name: get_blob
SELECT get_blob(%(by)s, %(digest)s) AS data;

-- name: blob_piece
SELECT * FROM blob_piece(%(by)s, %(digest)s, %(start)s, %(length)s);

-- name: finish_attempt
SELECT finish_attempt(%(by)s, %(outcome)s);
