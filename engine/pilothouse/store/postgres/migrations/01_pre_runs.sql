-- Runs, their steps and attempts, and what happened to them.
-- `json`, not `jsonb`: it keeps the escapes of NUL characters and lone surrogates as they were written.

CREATE TABLE installation (
    singleton  boolean     PRIMARY KEY DEFAULT true CHECK (singleton),
    id         uuid        NOT NULL DEFAULT gen_random_uuid(),
    created_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO installation DEFAULT VALUES;

-- One sequence for all scopes, so that any later leader of a run has a greater epoch than any earlier one.
CREATE SEQUENCE leader_epochs;

CREATE TABLE leaders (
    scope text        PRIMARY KEY,
    epoch bigint      NOT NULL,
    since timestamptz NOT NULL DEFAULT now()
);

-- Numbers are counted apart from the runs, so that none comes again after its run was deleted.
CREATE TABLE run_numbers (
    tenant   uuid    NOT NULL,
    workflow text    NOT NULL,
    newest   integer NOT NULL,
    PRIMARY KEY (tenant, workflow)
);

CREATE TABLE runs (
    tenant         uuid        NOT NULL,
    id             uuid        NOT NULL,
    number         integer     NOT NULL CHECK (number > 0),
    namespace      text        NOT NULL,
    workflow       text        NOT NULL,
    workflow_uid   uuid        NOT NULL,
    run_key        text        NOT NULL,
    closure        json        NOT NULL,
    params         json        NOT NULL,
    state          text        NOT NULL DEFAULT 'Running'
                   CHECK (state IN ('Running', 'Succeeded', 'Failed', 'Cancelled')),
    shutdown       text        CHECK (shutdown IN ('Stop', 'Cancel', 'Terminate')),
    outputs        json        NOT NULL DEFAULT '{}',
    failure        json,
    created_at     timestamptz NOT NULL DEFAULT now(),
    deadline       timestamptz,
    finished_at    timestamptz,
    event_seq      bigint      NOT NULL DEFAULT 0,
    leader_epoch   bigint      NOT NULL DEFAULT 0,
    schema_version integer     NOT NULL,
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, workflow, number),
    CHECK ((state = 'Running') = (finished_at IS NULL))
) WITH (fillfactor = 80);
CREATE INDEX runs_newest ON runs (created_at DESC, number DESC);
CREATE INDEX runs_unfinished ON runs (created_at DESC, number DESC) WHERE state = 'Running';

CREATE TABLE steps (
    tenant      uuid    NOT NULL,
    run         uuid    NOT NULL,
    path        text    NOT NULL,
    index       integer NOT NULL,
    position    integer NOT NULL,
    kind        text    NOT NULL,
    state       text    NOT NULL DEFAULT 'Pending'
                CHECK (state IN ('Pending', 'Running', 'Retrying', 'WaitingForApproval', 'Succeeded',
                                 'Failed', 'Error', 'Cancelled', 'Skipped', 'Omitted')),
    attempts    integer NOT NULL DEFAULT 0,
    restarts    integer NOT NULL DEFAULT 0,
    fence       bigint  NOT NULL DEFAULT 0,
    outputs     json    NOT NULL DEFAULT '{}',
    failure     json,
    started_at  timestamptz,
    finished_at timestamptz,
    wake_at     timestamptz,
    PRIMARY KEY (tenant, run, path, index),
    FOREIGN KEY (tenant, run) REFERENCES runs ON DELETE CASCADE
) WITH (fillfactor = 80);

-- `call` names the tool call that an attempt belongs to; without it, the attempt is one of the step itself.
CREATE TABLE attempts (
    tenant      uuid        NOT NULL,
    run         uuid        NOT NULL,
    id          uuid        NOT NULL,
    path        text        NOT NULL,
    index       integer     NOT NULL,
    number      integer     NOT NULL,
    restart     integer     NOT NULL,
    nonce       text        NOT NULL,
    fence       bigint      NOT NULL,
    lease_until timestamptz,
    call        text,
    state       text        NOT NULL DEFAULT 'Open'
                CHECK (state IN ('Open', 'Succeeded', 'Failed', 'NeverStarted', 'Lost', 'Released', 'Cancelled')),
    outputs     json        NOT NULL DEFAULT '{}',
    failure     json,
    log         json,
    created_at  timestamptz NOT NULL DEFAULT now(),
    deadline    timestamptz,
    finished_at timestamptz,
    PRIMARY KEY (tenant, run, id),
    FOREIGN KEY (tenant, run, path, index) REFERENCES steps ON DELETE CASCADE,
    CHECK ((state = 'Open') = (finished_at IS NULL))
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX attempts_fence ON attempts (tenant, run, path, index, fence) WHERE call IS NULL;
CREATE UNIQUE INDEX attempts_one_open ON attempts (tenant, run, path, index)
    WHERE state = 'Open' AND call IS NULL;

CREATE TABLE events (
    tenant uuid        NOT NULL,
    run    uuid        NOT NULL,
    seq    bigint      NOT NULL,
    type   text        NOT NULL,
    path   text,
    index  integer,
    data   json        NOT NULL,
    at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, run, seq),
    FOREIGN KEY (tenant, run) REFERENCES runs ON DELETE CASCADE
);

CREATE TABLE blobs (
    tenant     uuid        NOT NULL,
    digest     text        NOT NULL,
    data       bytea       NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, digest)
);
