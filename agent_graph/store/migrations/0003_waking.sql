-- When a run that waits is to be looked at although nobody comes, and what its budgets have left.

ALTER TABLE runs ADD COLUMN wake_at_ms INTEGER;
ALTER TABLE runs ADD COLUMN budget TEXT;
CREATE INDEX runs_waking ON runs (wake_at_ms) WHERE wake_at_ms IS NOT NULL AND status = 'waiting';
