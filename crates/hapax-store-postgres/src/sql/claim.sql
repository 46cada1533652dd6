-- Claims of several keys: makes the records that are not there yet, and tells of the others what they hold.
-- $1 ids, $2 nonces, $3 leases, $4 retentions, $5 algorithms, $6 fingerprints, $7 namespaces, $8 principals,
-- $9 operations, $10 how long to wait for a row. Rules X-01, X-04.
WITH made AS (
    INSERT INTO SCHEMA.record (
        id, version, state, reason, nonce, attempt, takeovers, lease_until, created_at, updated_at, expires_at,
        algorithm, fingerprint, namespace, principal, operation, seal
    )
    SELECT
        ask.id, 1, 1, 0, ask.nonce, 1, 0, now.ms + ask.lease, now.ms, now.ms, now.ms + ask.retention,
        ask.algorithm, ask.fingerprint, ask.namespace, ask.principal, ask.operation,
        SCHEMA.seal_of(ask.id, ask.algorithm, ask.fingerprint, ask.namespace, ask.principal, ask.operation)
    FROM
        -- The setting ends with the statement, so nothing is left on a connection that others share.
        (SELECT SCHEMA.now_ms() AS ms, set_config('lock_timeout', $10, true)) AS now,
        unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bigint[], $5::smallint[], $6::bytea[], $7::bytea[],
            $8::bytea[], $9::bytea[])
            AS ask (id, nonce, lease, retention, algorithm, fingerprint, namespace, principal, operation)
    -- Everybody takes rows in this order, so two batches never wait for each other in a circle.
    ORDER BY ask.id
    -- Not an update with a condition: that would lock the row and write to the log for every replay.
    ON CONFLICT (id) DO NOTHING
    RETURNING id
),
found AS (
    -- As they were when the statement began. One that was made meanwhile is in neither part, and the claim comes again.
    LOOK
)
SELECT made.id AS made, found.*
-- One that was removed meanwhile and made here is in both parts.
FROM found FULL JOIN made ON made.id = found.id
