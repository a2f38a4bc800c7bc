-- Where the answers of models are recorded that may be used again: by a digest of the call, the event that holds it.

CREATE TABLE answers (
    answer_no  INTEGER PRIMARY KEY,
    key        TEXT    NOT NULL UNIQUE,
    run_no     INTEGER NOT NULL REFERENCES runs (run_no) ON DELETE CASCADE,
    seq        INTEGER NOT NULL
);
CREATE INDEX answers_by_run ON answers (run_no);
