-- Removes records that are due, the longest due first. BATCH is put in: how many. Rules D-01, X-03.
-- Sent as one message, which is one transaction: the settings hold for its statements and end with them.

-- The server cannot know how many records are due, and takes nearly all of them for damaged, because their seals are
-- compared with something computed. So it would rather read and sort everything that is due, for every batch anew.
-- Without sorting it takes records from the index in their order, and stops when the batch is full.
SET LOCAL enable_sort = off;
-- Nobody waits for the disk. A removal that a crash undoes leaves a record that is due still, for the next sweep. The
-- removal of a key that was claimed since is not undone: the log is written in order, and the claim has waited for it.
SET LOCAL synchronous_commit = off;
WITH now AS MATERIALIZED (SELECT SCHEMA.now_ms() AS ms),
-- One more than is removed, to know whether there is more. Rows that somebody is at are left for the next time. What was
-- due and is not any more when its row is taken falls out here.
due AS MATERIALIZED (
    SELECT record.ctid AS place
    FROM SCHEMA.record
    WHERE record.expires_at <= (SELECT ms FROM now)
        AND record.version = 1
        -- A claim that is still believed is never due.
        AND (record.state IN (2, 3, 4, 5) OR (record.state = 1 AND record.lease_until <= (SELECT ms FROM now)))
        -- Nobody can say what a damaged row was worth.
        AND record.seal = SCHEMA.seal_of(record.id, record.algorithm, record.fingerprint, record.namespace,
            record.principal, record.operation)
    ORDER BY record.expires_at
    LIMIT BATCH + 1
    FOR UPDATE SKIP LOCKED
),
removed AS (
    DELETE FROM SCHEMA.record
    -- Where they lie, and not by their ids: these are at random places of their index. The rows are held, so they stay
    -- where they are. One that was written just before it was taken is too new to be seen here, and waits as well.
    WHERE record.ctid = ANY (ARRAY(SELECT place FROM due LIMIT BATCH))
    RETURNING record.state
)
SELECT
    count(*) FILTER (WHERE state IN (2, 3, 5)) AS expired,
    count(*) FILTER (WHERE state IN (1, 4)) AS dropped,
    (SELECT count(*) FROM due) > BATCH AS more
FROM removed
