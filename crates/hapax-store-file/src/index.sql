-- Finds a record by half of its id; two ids may share a half. Each row is a page of the index with a checksum: all
-- entries from the key `low` up to the one before the next row's. It is written and read by leaf.rs. The newest records
-- are not in it yet: see `indexed_row`.
CREATE TABLE leaf (
    low  INTEGER PRIMARY KEY,       -- the second half of a hash, as a number in the same order
    body BLOB NOT NULL
);

-- One row: what the store must remember about itself.
CREATE TABLE meta (
    rowid       INTEGER PRIMARY KEY CHECK (rowid = 1),
    seen_ms     INTEGER NOT NULL,   -- no decision was ever made at a later time than this
    indexed_row INTEGER NOT NULL,   -- every record up to this row is in `leaf`; of the others, some are
    next_row    INTEGER NOT NULL,   -- no record ever had this row or a later one
    waiting     INTEGER NOT NULL,   -- how many records come after indexed_row
    waiting_sum INTEGER NOT NULL,   -- a digest of which ones they are
    journal     INTEGER NOT NULL,   -- everything up to this generation of the journal is in here
    salt        INTEGER NOT NULL,   -- what frames of the next generation are known by
    is_open     INTEGER NOT NULL,   -- 1 from when a process opens the store to its orderly end: the journal must be there
    seal                            -- CRC-32 of the numbers before; 'anew' has the index made anew at the next start
);
