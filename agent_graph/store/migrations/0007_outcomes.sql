-- What runs came to, by the version of their graph: counted in the transaction that ends a run, and kept when retention
-- has taken the run.

CREATE TABLE outcomes (
    graph_id       TEXT    NOT NULL,
    graph_version  TEXT    NOT NULL,
    status         TEXT    NOT NULL,
    code           TEXT    NOT NULL,
    runs           INTEGER NOT NULL,
    llm_calls      INTEGER NOT NULL,
    tokens         INTEGER NOT NULL,
    token_runs     INTEGER NOT NULL,
    wall_clock_ms  INTEGER NOT NULL,
    first_at_ms    INTEGER NOT NULL,
    last_at_ms     INTEGER NOT NULL,
    PRIMARY KEY (graph_id, graph_version, status, code)
) WITHOUT ROWID;

-- Of which version of which template this program made a version of a graph.
CREATE TABLE origins (
    graph_id          TEXT NOT NULL,
    graph_version     TEXT NOT NULL,
    template_id       TEXT NOT NULL,
    template_version  TEXT NOT NULL,
    PRIMARY KEY (graph_id, graph_version),
    FOREIGN KEY (graph_id, graph_version) REFERENCES graph_versions (graph_id, graph_version)
) WITHOUT ROWID;
CREATE INDEX origins_by_template ON origins (template_id);

-- The runs that have ended by now.
INSERT INTO outcomes
SELECT graph_id, graph_version, status,
       CASE status WHEN 'failed' THEN coalesce(json_extract(error, '$.code'), '') ELSE '' END AS code,
       count(*), total(json_extract(usage, '$.llm_calls')),
       total(CASE WHEN json_type(usage, '$.prompt_tokens') = 'integer'
                  THEN json_extract(usage, '$.prompt_tokens') + json_extract(usage, '$.completion_tokens') END),
       count(CASE WHEN json_type(usage, '$.prompt_tokens') = 'integer' THEN 1 END),
       total(max(0, coalesce(finished_at_ms - started_at_ms, 0))),
       min(coalesce(finished_at_ms, created_at_ms)), max(coalesce(finished_at_ms, created_at_ms))
FROM runs WHERE status IN ('completed', 'failed', 'cancelled')
GROUP BY graph_id, graph_version, status, code;
