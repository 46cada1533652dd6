-- One claim and its completion as the plainest client sends them: one row, one statement, one commit each. Run by
-- pgbench against the table of the store, with all its indexes.
\set number random(1, 9223372036854775806)
INSERT INTO hapax.record (
    id, version, state, reason, nonce, attempt, takeovers, lease_until, created_at, updated_at, expires_at,
    algorithm, fingerprint, namespace, principal, operation, seal
)
SELECT
    id, 1, 1, 0, substring(id FOR 16), 1, 0, ms + 86400000, ms, ms, ms + 86400000,
    1, id, '', NULL, 'POST /orders', hapax.seal_of(id, 1::smallint, id, '', NULL, 'POST /orders')
FROM (SELECT sha256(int8send(:number)) AS id, hapax.now_ms() AS ms) AS ask
ON CONFLICT (id) DO NOTHING;
UPDATE hapax.record SET
    state = 2, lease_until = 0, updated_at = hapax.now_ms(), expires_at = hapax.now_ms() + 86400000,
    outcome = convert_to(repeat('x', 760), 'UTF8')
WHERE id = sha256(int8send(:number)) AND nonce = substring(sha256(int8send(:number)) FOR 16) AND state = 1;
