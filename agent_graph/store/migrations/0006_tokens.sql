-- Who may come in over HTTP: of a token only the digest is kept, so that reading this file lets nobody in.

CREATE TABLE tokens (
    token_id       TEXT    PRIMARY KEY,
    principal      TEXT    NOT NULL,
    digest         TEXT    NOT NULL,
    scopes         TEXT    NOT NULL,
    created_at_ms  INTEGER NOT NULL,
    expires_at_ms  INTEGER,
    revoked_at_ms  INTEGER
) WITHOUT ROWID;
