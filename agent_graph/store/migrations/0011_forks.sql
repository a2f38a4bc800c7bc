-- Of a fork: {run_id, seq} of the run whose events it begins with, up to and with that one.

ALTER TABLE runs ADD COLUMN forked_from TEXT;
