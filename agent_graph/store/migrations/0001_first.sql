-- Graphs by id with immutable versions, runs with their event log, approvals, and answers under idempotency keys.

-- A version never changes once it is stored: runs are pinned to it.
CREATE TABLE graph_versions (
    version_no     INTEGER PRIMARY KEY,
    graph_id       TEXT    NOT NULL,
    graph_version  TEXT    NOT NULL,
    description    TEXT    NOT NULL,
    node_count     INTEGER NOT NULL,
    edge_count     INTEGER NOT NULL,
    stored_at_ms   INTEGER NOT NULL,
    spec           TEXT    NOT NULL,
    compiled       TEXT    NOT NULL,
    UNIQUE (graph_id, graph_version)
);

-- Which version a name stands for; a deleted graph is hidden, its versions stay.
CREATE TABLE graphs (
    graph_id       TEXT    PRIMARY KEY,
    graph_version  TEXT    NOT NULL,
    updated_at_ms  INTEGER NOT NULL,
    hidden         INTEGER NOT NULL DEFAULT 0,
    FOREIGN KEY (graph_id, graph_version) REFERENCES graph_versions (graph_id, graph_version)
) WITHOUT ROWID;

-- What lists show, and the head of the event chain, so that appending reads no event. final_state NULL = no result yet.
CREATE TABLE runs (
    run_no          INTEGER PRIMARY KEY,
    run_id          TEXT    NOT NULL UNIQUE,
    graph_id        TEXT    NOT NULL,
    graph_version   TEXT    NOT NULL,
    thread_id       TEXT    NOT NULL,
    created_at_ms   INTEGER NOT NULL,
    status          TEXT    NOT NULL,
    seq             INTEGER NOT NULL,
    head            TEXT    NOT NULL,
    started_at_ms   INTEGER,
    finished_at_ms  INTEGER,
    error           TEXT,
    usage           TEXT    NOT NULL,
    final_state     TEXT,
    FOREIGN KEY (graph_id, graph_version) REFERENCES graph_versions (graph_id, graph_version)
);
CREATE INDEX runs_by_status ON runs (status);
CREATE INDEX runs_by_graph ON runs (graph_id, graph_version);
CREATE INDEX runs_by_thread ON runs (thread_id) WHERE thread_id <> '';

-- event_no = run_no * 2^32 + seq: one tree in run order, filled at its right end, and no second index to write.
CREATE TABLE events (
    event_no  INTEGER PRIMARY KEY,
    body      TEXT NOT NULL
);

-- A memoised fold of a run's first `seq` events; only the latest is kept.
CREATE TABLE snapshots (
    run_no  INTEGER PRIMARY KEY REFERENCES runs (run_no) ON DELETE CASCADE,
    seq     INTEGER NOT NULL,
    digest  TEXT    NOT NULL,
    data    BLOB    NOT NULL
);

-- What can be asked for is a column; the rest of the record is in body.
CREATE TABLE approvals (
    approval_no    INTEGER PRIMARY KEY,
    approval_id    TEXT    NOT NULL UNIQUE,
    run_no         INTEGER NOT NULL REFERENCES runs (run_no) ON DELETE CASCADE,
    status         TEXT    NOT NULL,
    created_at_ms  INTEGER NOT NULL,
    expires_at_ms  INTEGER NOT NULL,
    audience       TEXT    NOT NULL,
    body           TEXT    NOT NULL
);
CREATE INDEX approvals_by_run ON approvals (run_no);
CREATE INDEX approvals_pending ON approvals (expires_at_ms) WHERE status = 'pending';

-- Answers under idempotency keys, kept as long as the run they made.
CREATE TABLE requests (
    key             TEXT PRIMARY KEY,
    request_digest  TEXT NOT NULL,
    answer          TEXT NOT NULL,
    run_id          TEXT REFERENCES runs (run_id) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX requests_by_run ON requests (run_id) WHERE run_id IS NOT NULL;
