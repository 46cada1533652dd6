-- The records of one store. One row for each scoped key.

-- The store's clock for leases and retention, in milliseconds since the Unix epoch. It is the time of the call, not of the
-- beginning of the transaction: a statement may have waited for a row before.
CREATE FUNCTION SCHEMA.now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

-- Seals the parts of a row that never change while an attempt holds it. A row with a wrong seal was damaged or edited, and
-- is reported as present and unreadable. Lengths come first, so that no two rows have the same input.
CREATE FUNCTION SCHEMA.seal_of(
    id bytea, algorithm smallint, fingerprint bytea, namespace bytea, principal bytea, operation bytea
) RETURNS bytea LANGUAGE sql IMMUTABLE AS
$$
    SELECT sha256(
        id || int2send(algorithm) || fingerprint
        || int4send(octet_length(namespace)) || namespace
        || coalesce(int4send(octet_length(principal)) || principal, int4send(-1))
        || operation
    )
$$;

CREATE TABLE SCHEMA.record (
    id bytea PRIMARY KEY,
    -- The version of the row's layout. Statements leave rows with another version unchanged.
    version smallint NOT NULL,
    -- 1 in progress, 2 completed, 3 failed, 4 uncertain, 5 released.
    state smallint NOT NULL,
    -- Why the record is uncertain, while the state is 4: 1 lapsed, 2 panicked, 3 restarted, 4 declared. Otherwise 0.
    reason smallint NOT NULL,
    nonce bytea NOT NULL,
    attempt bigint NOT NULL,
    takeovers bigint NOT NULL,
    -- Times are milliseconds since the Unix epoch.
    lease_until bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    algorithm smallint NOT NULL,
    fingerprint bytea NOT NULL,
    -- UTF-8 as bytes, because text has no zero byte and depends on the encoding of the database.
    namespace bytea NOT NULL,
    principal bytea,
    operation bytea NOT NULL,
    seal bytea NOT NULL,
    -- A caller waits for this record: notify when it changes.
    watched boolean NOT NULL DEFAULT false,
    outcome bytea
) WITH (
    -- Every row is written twice and removed once. The default threshold, a fifth of a large table, would be too late.
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.05
);

-- For the sweep.
CREATE INDEX record_by_expiry ON SCHEMA.record (expires_at);
-- For listings, newest first.
CREATE INDEX record_by_age ON SCHEMA.record (created_at, id);
-- For listings of open records, among millions of finished ones.
CREATE INDEX record_open ON SCHEMA.record (created_at, id) WHERE state IN (1, 4);
