-- Removes a record that was read before, unless it has changed. $1 id, $2 to $6 the columns as read, $7 the lock timeout,
-- $8 the channel. Rule D-07.
WITH now AS MATERIALIZED (SELECT set_config('lock_timeout', $7, true)),
removed AS (
    DELETE FROM SCHEMA.record
    USING now
    WHERE id = $1
        AND nonce = $2 AND state = $3 AND lease_until = $4 AND updated_at = $5 AND expires_at = $6
    RETURNING id, watched
)
SELECT CASE WHEN watched THEN pg_notify($8, encode(id, 'hex')) END FROM removed
