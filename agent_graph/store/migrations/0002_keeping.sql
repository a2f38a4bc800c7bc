-- What retention keeps and takes: a pinned run is never pruned, of a pruned one the events before first_seq are gone.

ALTER TABLE runs ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN first_seq INTEGER NOT NULL DEFAULT 0;
