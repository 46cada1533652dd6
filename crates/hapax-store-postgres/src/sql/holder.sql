-- The attempts that hold these records. $1 ids.
SELECT
    id, nonce, state,
    version = 1 AND seal = SCHEMA.seal_of(id, algorithm, fingerprint, namespace, principal, operation) AS is_whole
FROM SCHEMA.record
WHERE id = ANY($1::bytea[])
