-- When the clock ends something in a run, so that it is woken though nobody drives it: a gate's expiry, a timer, a wait.

ALTER TABLE runs ADD COLUMN wake_at_ms INTEGER;
UPDATE runs SET wake_at_ms = (
    SELECT min(expires_at_ms) FROM approvals WHERE approvals.run_no = runs.run_no AND approvals.status = 'pending'
);
CREATE INDEX runs_to_wake ON runs (wake_at_ms) WHERE wake_at_ms IS NOT NULL;
