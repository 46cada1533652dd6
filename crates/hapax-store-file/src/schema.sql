-- The layout of a file store, version 4; the tables of its index are in index.sql. All times are milliseconds since the Unix epoch on the store's clock.

-- One row per record. Rows are small and are appended in the order of creation, so that claims and completions
-- of one moment meet on the same few pages; `rowid` is therefore also the order of a listing.
CREATE TABLE record (
    rowid       INTEGER PRIMARY KEY,
    hash        BLOB NOT NULL,      -- first half of the record's id; its first 8 bytes are the key's own hash
    tail        BLOB NOT NULL,      -- second half of the record's id
    state       INTEGER NOT NULL,   -- 1 in progress, 2 completed, 3 failed, 4 uncertain, 5 released
    lease_ms    INTEGER,            -- in progress only: until when the claim is believed
    due_ms      INTEGER NOT NULL,   -- when a sweep may remove the record
    updated_ms  INTEGER NOT NULL,   -- when the status last changed
    head        BLOB NOT NULL,      -- the record without its outcome, as hapax_core::codec writes it: the truth
    outcome_row INTEGER             -- the row of `outcome`, when there is one
);

-- Finds what is due for a sweep, what is open at a restart, and counts by state, without touching a row.
CREATE INDEX record_by_state ON record (state, due_ms);

-- Outcomes are written once, appended, and never moved by a later change of their record.
CREATE TABLE outcome (
    rowid   INTEGER PRIMARY KEY,
    outcome BLOB NOT NULL           -- as hapax_core::codec writes it
);

-- For people: the same with words.
CREATE VIEW records AS
SELECT lower(hex(hash) || hex(tail)) AS id,
       CASE state WHEN 1 THEN 'in_progress' WHEN 2 THEN 'completed' WHEN 3 THEN 'failed'
                  WHEN 4 THEN 'uncertain' WHEN 5 THEN 'released' END AS state,
       datetime(lease_ms / 1000, 'unixepoch') AS lease_until,
       datetime(updated_ms / 1000, 'unixepoch') AS updated_at,
       datetime(due_ms / 1000, 'unixepoch') AS expires_at
FROM record;
