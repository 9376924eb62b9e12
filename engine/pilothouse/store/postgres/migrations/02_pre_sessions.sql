-- An agent's conversation: sessions, the tree of their entries, and the tool calls of their turns.

CREATE TABLE sessions (
    tenant     uuid        NOT NULL,
    id         uuid        NOT NULL,
    run        uuid        NOT NULL,
    leaf       uuid,
    entry_seq  bigint      NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, run) REFERENCES runs ON DELETE CASCADE
) WITH (fillfactor = 80);
CREATE INDEX sessions_of_run ON sessions (tenant, run, created_at);

CREATE TABLE entries (
    tenant  uuid        NOT NULL,
    session uuid        NOT NULL,
    id      uuid        NOT NULL,
    parent  uuid,
    seq     bigint      NOT NULL,
    type    text        NOT NULL,
    body    json        NOT NULL,
    attempt uuid        NOT NULL,
    at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, session, id),
    UNIQUE (tenant, session, seq),
    FOREIGN KEY (tenant, session) REFERENCES sessions ON DELETE CASCADE
);

-- A session without entries has one row, whose `id` is null.
CREATE VIEW session_entries AS
SELECT s.tenant, s.run, s.id AS session, s.created_at, s.leaf, e.id, e.parent, e.seq, e.type, e.body, e.attempt, e.at
FROM sessions AS s LEFT JOIN entries AS e ON e.tenant = s.tenant AND e.session = s.id;

-- Pending: proposed to a person. Intended: about to be executed. Finished: `result` says how it ended.
CREATE TABLE tool_calls (
    tenant      uuid    NOT NULL,
    session     uuid    NOT NULL,
    turn        uuid    NOT NULL,
    ordinal     integer NOT NULL CHECK (ordinal >= 0),
    call        text    NOT NULL,
    tool        text    NOT NULL,
    arguments   bytea   NOT NULL,
    digest      text    NOT NULL,
    idempotent  boolean NOT NULL,
    pending     boolean NOT NULL DEFAULT false,
    attempt     uuid    NOT NULL,
    intended_at timestamptz,
    result      json,
    is_error    boolean NOT NULL DEFAULT false,
    finished_at timestamptz,
    PRIMARY KEY (tenant, session, turn, ordinal),
    FOREIGN KEY (tenant, session, turn) REFERENCES entries ON DELETE CASCADE,
    CHECK (pending = (intended_at IS NULL)),
    CHECK ((result IS NULL) = (finished_at IS NULL))
);
