-- So many finished records, as they are kept for a while. SCHEMA, COUNT, DUE and OUTCOME are put in: DUE is when the
-- first of them is due, in milliseconds from now, and OUTCOME how many bytes were answered.
-- The ids are spread evenly and come in their order, because that is quick; the keys that are claimed later are not.
INSERT INTO SCHEMA.record (
    id, version, state, reason, nonce, attempt, takeovers, lease_until, created_at, updated_at, expires_at,
    algorithm, fingerprint, namespace, principal, operation, seal, outcome
)
SELECT
    id, 1, 2, 0, substring(id FROM 5 FOR 16), 1, 0, 0, now.ms, now.ms, now.ms + DUE + number / 1000,
    1, id, '', NULL, 'POST /orders', SCHEMA.seal_of(id, 1::smallint, id, '', NULL, 'POST /orders'),
    convert_to(repeat('x', OUTCOME), 'UTF8')
FROM
    (SELECT SCHEMA.now_ms() AS ms) AS now,
    generate_series(0, COUNT - 1) AS number,
    LATERAL (
        SELECT substring(int8send(number * 4294967296 / COUNT) FROM 5)
            || substring(sha256(int8send(number) || int8send(DUE)) FOR 28) AS id
    ) AS key
