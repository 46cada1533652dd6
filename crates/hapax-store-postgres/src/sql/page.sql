-- Ids, newest first, below a position in that order.
-- $1, $2 the position, $3, $4 the first and last id, $5 states, $6 namespace, $7 prefix of the operation, $8 the limit.
SELECT id, created_at
FROM SCHEMA.record
WHERE (created_at, id) < ($1, $2)
    AND id BETWEEN $3 AND $4
    -- Whether an unreadable row matches is unknown, so it is shown.
    AND (
        version <> 1
        OR seal <> SCHEMA.seal_of(id, algorithm, fingerprint, namespace, principal, operation)
        OR (
            ($6::bytea IS NULL OR namespace = $6)
            AND substring(operation FROM 1 FOR octet_length($7::bytea)) = $7
            -- A claim whose lease has lapsed is uncertain before that is written.
            AND CASE WHEN state = 1 AND lease_until <= SCHEMA.now_ms() THEN 4 ELSE state END = ANY($5::smallint[])
        )
    )
    OPEN_ONLY
ORDER BY created_at DESC, id DESC
LIMIT $8
