-- Who started a run, where somebody was authenticated; the local user is nobody by name.

ALTER TABLE runs ADD COLUMN principal TEXT NOT NULL DEFAULT '';
CREATE INDEX runs_by_principal ON runs (principal) WHERE principal <> '';
