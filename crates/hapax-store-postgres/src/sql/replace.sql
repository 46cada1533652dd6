-- Replaces a record that was read before, unless it has changed: takeovers, settlements, claims of keys whose record has
-- expired, and lapses. The names stay: they are part of the id.
-- $1 id, $2 to $6 the columns as read, $7 to $18 their new values, $19 the lock timeout, $20 the channel.
-- Rules X-02, X-03, D-07.
WITH now AS MATERIALIZED (SELECT set_config('lock_timeout', $19, true)),
written AS (
    UPDATE SCHEMA.record SET
        state = $7, reason = $8, nonce = $9, attempt = $10, takeovers = $11, lease_until = $12, created_at = $13,
        updated_at = $14, expires_at = $15, algorithm = $16, fingerprint = $17, outcome = $18,
        seal = SCHEMA.seal_of(id, $16, $17, namespace, principal, operation)
    FROM now
    WHERE id = $1 AND version = 1
        AND nonce = $2 AND state = $3 AND lease_until = $4 AND updated_at = $5 AND expires_at = $6
    RETURNING id, watched
)
-- NOTIFY serializes all commits of the database, so only for watched records.
SELECT CASE WHEN watched THEN pg_notify($20, encode(id, 'hex')) END FROM written
