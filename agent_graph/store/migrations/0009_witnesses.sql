-- Sources as they were captured, sealed under the folder's key; and which runs cite them, so that these can be shown.

CREATE TABLE witnesses (
    witness_no       INTEGER PRIMARY KEY,
    witness_id       TEXT    NOT NULL UNIQUE,
    principal        TEXT    NOT NULL,
    locator          TEXT    NOT NULL,
    media_type       TEXT    NOT NULL,
    authority_class  TEXT    NOT NULL,
    retrieved_at_ms  INTEGER NOT NULL,
    captured_at_ms   INTEGER NOT NULL,
    via              TEXT    NOT NULL,
    digest           TEXT    NOT NULL,
    content          BLOB    NOT NULL,
    key_id           TEXT    NOT NULL,
    seal             TEXT    NOT NULL
);
CREATE INDEX witnesses_by_age ON witnesses (captured_at_ms);

-- Taken with the run's record, or with the run.
CREATE TABLE witness_uses (
    witness_no  INTEGER NOT NULL REFERENCES witnesses (witness_no),
    run_no      INTEGER NOT NULL REFERENCES runs (run_no) ON DELETE CASCADE,
    PRIMARY KEY (witness_no, run_no)
) WITHOUT ROWID;
CREATE INDEX witness_uses_by_run ON witness_uses (run_no);
