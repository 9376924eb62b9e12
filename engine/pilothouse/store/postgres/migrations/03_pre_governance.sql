-- What people decide and what agents may spend: approvals, their single use, budgets; and traces.

-- `request` holds every field that the digest covers; `pins` what the approval gate looked like when it was announced.
CREATE TABLE approvals (
    tenant      uuid        NOT NULL,
    id          uuid        NOT NULL,
    run         uuid        NOT NULL,
    path        text        NOT NULL,
    index       integer     NOT NULL,
    attempt     uuid,
    session     uuid,
    turn        uuid,
    ordinal     integer,
    seat        integer     NOT NULL DEFAULT 1 CHECK (seat > 0),
    kind        text        NOT NULL CHECK (kind IN ('ToolCall', 'OutcomeUnknown', 'Gate')),
    class       text        NOT NULL,
    arguments   bytea       NOT NULL,
    digest      text        NOT NULL,
    nonce       text        NOT NULL,
    request     json        NOT NULL,
    object_name text,
    object_uid  uuid,
    pins        json,
    state       text        NOT NULL DEFAULT 'Pending'
                CHECK (state IN ('Pending', 'Announced', 'Approved', 'Denied', 'MarkedDone', 'Expired',
                                 'Withdrawn')),
    decided_by  text,
    decided_at  timestamptz,
    reason      text,
    result      json,
    created_at  timestamptz NOT NULL DEFAULT now(),
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, run, path, index) REFERENCES steps ON DELETE CASCADE,
    CHECK ((session IS NULL) = (turn IS NULL) AND (turn IS NULL) = (ordinal IS NULL)),
    CHECK ((decided_by IS NULL) = (decided_at IS NULL))
);
CREATE UNIQUE INDEX approvals_object ON approvals (object_uid) WHERE object_uid IS NOT NULL;
-- The same question is open once: a replayed attempt finds it instead of asking again.
CREATE UNIQUE INDEX approvals_asked ON approvals (tenant, run, path, index, session, turn, ordinal, kind, digest, seat)
    NULLS NOT DISTINCT WHERE state IN ('Pending', 'Announced');

-- An approval is used once, in the transaction that writes the intent of its call.
CREATE TABLE consumptions (
    tenant       uuid        NOT NULL,
    approval_uid uuid        NOT NULL,
    session      uuid        NOT NULL,
    turn         uuid        NOT NULL,
    ordinal      integer     NOT NULL,
    attempt      uuid        NOT NULL,
    token        text        NOT NULL,
    at           timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, approval_uid),
    UNIQUE (approval_uid),
    FOREIGN KEY (tenant, session, turn, ordinal) REFERENCES tool_calls ON DELETE CASCADE
);

-- `subject` is what the budget binds: the run, a step's path or an agent.
CREATE TABLE budgets (
    tenant  uuid    NOT NULL,
    run     uuid    NOT NULL,
    subject text    NOT NULL,
    kind    text    NOT NULL CHECK (kind IN ('Turns', 'Calls', 'Tokens', 'Cost', 'Seconds')),
    allowed numeric NOT NULL CHECK (allowed >= 0),
    used    numeric NOT NULL DEFAULT 0 CHECK (used >= 0),
    PRIMARY KEY (tenant, run, subject, kind),
    FOREIGN KEY (tenant, run) REFERENCES runs ON DELETE CASCADE
);

CREATE TABLE traces (
    tenant     uuid        NOT NULL,
    run        uuid        NOT NULL,
    span       uuid        NOT NULL,
    parent     uuid,
    level      text        NOT NULL CHECK (level IN ('Session', 'Run', 'Task', 'Step', 'Action')),
    name       text        NOT NULL,
    path       text,
    index      integer,
    attempt    uuid,
    attributes json        NOT NULL DEFAULT '{}',
    failure    json,
    started_at timestamptz NOT NULL DEFAULT now(),
    ended_at   timestamptz,
    PRIMARY KEY (tenant, run, span),
    FOREIGN KEY (tenant, run) REFERENCES runs ON DELETE CASCADE
);
CREATE INDEX traces_in_order ON traces (tenant, run, started_at);
