-- Each row is sealed over its columns, so that one that somebody else has changed is not taken for what was written.
-- `content` is the digest of a version's spec and compiled form: a list need not read them. Rows of before are sealed as
-- they are found.

ALTER TABLE graph_versions ADD COLUMN content TEXT NOT NULL DEFAULT '';
ALTER TABLE graph_versions ADD COLUMN row_seal TEXT NOT NULL DEFAULT '';
ALTER TABLE graphs ADD COLUMN row_seal TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN made_seal TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN row_seal TEXT NOT NULL DEFAULT '';
ALTER TABLE snapshots ADD COLUMN row_seal TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN row_seal TEXT NOT NULL DEFAULT '';
ALTER TABLE requests ADD COLUMN row_seal TEXT NOT NULL DEFAULT '';
ALTER TABLE answers ADD COLUMN row_seal TEXT NOT NULL DEFAULT '';
ALTER TABLE tokens ADD COLUMN row_seal TEXT NOT NULL DEFAULT '';
ALTER TABLE outcomes ADD COLUMN row_seal TEXT NOT NULL DEFAULT '';
ALTER TABLE origins ADD COLUMN row_seal TEXT NOT NULL DEFAULT '';
ALTER TABLE outbox ADD COLUMN row_seal TEXT NOT NULL DEFAULT '';
ALTER TABLE told ADD COLUMN row_seal TEXT NOT NULL DEFAULT '';
