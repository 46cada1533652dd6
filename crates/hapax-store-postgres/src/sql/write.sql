-- Writes by the attempts that hold the records: renewals (to state 1), completions (2, 3), abandonments (4) and
-- releases (5). Returns those that were applied now.
-- $1 ids, $2 nonces, $3 states, $4 reasons, $5 spans, $6 outcomes, $7 the lock timeout, $8 the channel.
-- Rules X-02, X-03, X-07, X-09, D-01.
WITH ask AS (
    -- Without the outcomes: a column that is joined to locked rows is copied with each of them, twice.
    SELECT *
    FROM unnest($1::bytea[], $2::bytea[], $3::smallint[], $4::smallint[], $5::bigint[])
        WITH ORDINALITY AS ask (id, nonce, state, reason, span, place)
),
now AS MATERIALIZED (
    -- The setting ends with the statement, so nothing is left on a shared connection.
    SELECT SCHEMA.now_ms() AS ms, set_config('lock_timeout', $7, true)
),
-- Locks the rows in the order of their ids, as every batch does. A plain UPDATE locks them in any order.
held AS MATERIALIZED (
    SELECT ask.*
    FROM now, ask JOIN SCHEMA.record ON record.id = ask.id
    WHERE record.nonce = ask.nonce
        AND record.version = 1
        -- A claim in progress may become anything. An uncertain one may be completed or released by its owner.
        -- By CASE, from which the planner does not conclude that it could scan all open records.
        AND CASE record.state WHEN 1 THEN true WHEN 4 THEN ask.state IN (2, 3, 5) ELSE false END
        AND record.seal = SCHEMA.seal_of(record.id, record.algorithm, record.fingerprint, record.namespace,
            record.principal, record.operation)
    ORDER BY record.id
    FOR UPDATE OF record
),
written AS (
    UPDATE SCHEMA.record SET
        state = held.state,
        reason = held.reason,
        outcome = ($6::bytea[])[held.place::int],
        -- A renewal is no change of status.
        updated_at = CASE held.state WHEN 1 THEN record.updated_at ELSE now.ms END,
        lease_until = CASE held.state WHEN 1 THEN now.ms + held.span ELSE 0 END,
        expires_at = CASE held.state
            -- The retention of an uncertain record counts from the owner's last renewal, so it moves along.
            WHEN 1 THEN record.expires_at + greatest(now.ms + held.span - record.lease_until, 0)
            WHEN 4 THEN record.expires_at
            ELSE now.ms + held.span
        END
    FROM now, held
    WHERE record.id = held.id
        -- Compared again, in case the row changed before it was locked.
        AND record.nonce = held.nonce
        AND CASE record.state WHEN 1 THEN true WHEN 4 THEN held.state IN (2, 3, 5) ELSE false END
    RETURNING record.id, record.state, record.watched
)
-- NOTIFY serializes all commits of the database, so only for watched records.
SELECT id, CASE WHEN watched AND state <> 1 THEN pg_notify($8, encode(id, 'hex')) END
FROM written
