-- What was sealed of a run in the transaction that ended it: {key_id, seal, sealed_at_ms, late}. NULL where nothing was.

ALTER TABLE runs ADD COLUMN seal TEXT;
