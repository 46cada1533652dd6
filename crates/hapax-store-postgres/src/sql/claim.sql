-- Claims several keys: creates the absent records and returns the existing ones.
-- $1 ids, $2 nonces, $3 leases, $4 retentions, $5 algorithms, $6 fingerprints, $7 namespaces, $8 principals,
-- $9 operations, $10 the lock timeout. Rules X-01, X-04.
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
        -- The setting ends with the statement, so nothing is left on a shared connection.
        (SELECT SCHEMA.now_ms() AS ms, set_config('lock_timeout', $10, true)) AS now,
        unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bigint[], $5::smallint[], $6::bytea[], $7::bytea[],
            $8::bytea[], $9::bytea[])
            AS ask (id, nonce, lease, retention, algorithm, fingerprint, namespace, principal, operation)
    -- Every batch locks rows in this order, so batches do not deadlock.
    ORDER BY ask.id
    -- Not ON CONFLICT DO UPDATE: that would lock the row and write to the WAL for every replay.
    ON CONFLICT (id) DO NOTHING
    RETURNING id
),
found AS (
    -- As of the statement's snapshot. A record that was created concurrently is in neither part, and its claim is retried.
    FETCH_RECORDS
)
SELECT made.id AS made, found.*
-- A record that was removed concurrently and then created here is in both parts.
FROM found FULL JOIN made ON made.id = found.id
