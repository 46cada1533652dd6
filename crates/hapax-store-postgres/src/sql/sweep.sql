-- Removes expired records, the oldest first. BATCH is replaced by the limit. Rules D-01, X-03.
-- Sent as one message, which is one transaction: the settings hold for its statements and end with them.

-- The planner cannot estimate how many records have expired, and takes nearly all of them for damaged, because their seals
-- are compared with a computed value. It would rather read and sort all expired records for every batch. Without sorting
-- it reads the index in order, and stops when the batch is full.
SET LOCAL enable_sort = off;
-- Asynchronous commit: a removal that a crash undoes leaves an expired record for the next sweep. The removal of a key that
-- was claimed since is not undone: the WAL is written in order, and the claim's commit has flushed it.
SET LOCAL synchronous_commit = off;
WITH now AS MATERIALIZED (SELECT SCHEMA.now_ms() AS ms),
-- One more than is removed, to know whether there are more. Locked rows are left for the next sweep. A record that is no
-- longer due when its row is locked drops out here.
due AS MATERIALIZED (
    SELECT record.ctid AS place
    FROM SCHEMA.record
    WHERE record.expires_at <= (SELECT ms FROM now)
        AND record.version = 1
        -- A claim with a live lease is never due.
        AND (record.state IN (2, 3, 4, 5) OR (record.state = 1 AND record.lease_until <= (SELECT ms FROM now)))
        -- The state of a damaged row is unknown.
        AND record.seal = SCHEMA.seal_of(record.id, record.algorithm, record.fingerprint, record.namespace,
            record.principal, record.operation)
    ORDER BY record.expires_at
    LIMIT BATCH + 1
    FOR UPDATE SKIP LOCKED
),
removed AS (
    DELETE FROM SCHEMA.record
    -- By their physical position, not by their ids, which are at random places of their index. The rows are locked, so they
    -- do not move. A row that was written just before it was locked is too new to be visible here, and waits as well.
    WHERE record.ctid = ANY (ARRAY(SELECT place FROM due LIMIT BATCH))
    RETURNING record.state
)
SELECT
    count(*) FILTER (WHERE state IN (2, 3, 5)) AS expired,
    count(*) FILTER (WHERE state IN (1, 4)) AS dropped,
    (SELECT count(*) FROM due) > BATCH AS more
FROM removed
