-- Removes records that are due, the longest due first. $1 how many. Rules D-01, X-03.
WITH now AS MATERIALIZED (SELECT SCHEMA.now_ms() AS ms),
-- One more than is removed, to know whether there is more. Rows that somebody is at are left for the next time. What was
-- due and is not any more when its row is taken falls out here.
due AS MATERIALIZED (
    SELECT record.id, record.state
    FROM SCHEMA.record
    WHERE record.expires_at <= (SELECT ms FROM now)
        AND record.version = 1
        -- A claim that is still believed is never due.
        AND (record.state IN (2, 3, 4, 5) OR (record.state = 1 AND record.lease_until <= (SELECT ms FROM now)))
        -- Nobody can say what a damaged row was worth.
        AND record.seal = SCHEMA.seal_of(record.id, record.algorithm, record.fingerprint, record.namespace,
            record.principal, record.operation)
    ORDER BY record.expires_at
    LIMIT $1 + 1
    FOR UPDATE SKIP LOCKED
),
removed AS (
    DELETE FROM SCHEMA.record
    USING (SELECT id FROM due LIMIT $1) AS chosen
    WHERE record.id = chosen.id
    RETURNING record.state
)
SELECT
    count(*) FILTER (WHERE state IN (2, 3, 5)) AS expired,
    count(*) FILTER (WHERE state IN (1, 4)) AS dropped,
    (SELECT count(*) FROM due) > $1 AS more
FROM removed
