-- What somebody outside is to be told: written in the transaction of what it tells of, gone once it was told.

CREATE TABLE outbox (
    notice_no   INTEGER PRIMARY KEY,
    target      TEXT    NOT NULL,
    notice_id   TEXT    NOT NULL,
    at_ms       INTEGER NOT NULL,
    body        TEXT    NOT NULL,
    tries       INTEGER NOT NULL DEFAULT 0,
    next_at_ms  INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX outbox_by_target ON outbox (target, next_at_ms);

-- What came of telling them, by target.
CREATE TABLE told (
    target           TEXT    PRIMARY KEY,
    delivered        INTEGER NOT NULL,
    given_up         INTEGER NOT NULL,
    delivered_at_ms  INTEGER,
    failed_at_ms     INTEGER,
    failure          TEXT    NOT NULL
) WITHOUT ROWID;
