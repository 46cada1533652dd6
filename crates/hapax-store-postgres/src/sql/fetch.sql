-- Reads records, and the time. $1 ids.
SELECT
    id, version, state, reason, nonce, attempt, takeovers, lease_until, created_at, updated_at, expires_at,
    algorithm, fingerprint, namespace, principal, operation, outcome,
    seal = SCHEMA.seal_of(id, algorithm, fingerprint, namespace, principal, operation) AS is_whole,
    SCHEMA.now_ms() AS now
FROM SCHEMA.record
WHERE id = ANY($1::bytea[])
