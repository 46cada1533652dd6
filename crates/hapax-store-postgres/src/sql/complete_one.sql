-- The completion of one attempt, in the transaction of its writes. Returns its record if it was applied now. The same rules
-- as write.sql, which plans and locks for many records: that takes the server longer than the update itself.
-- $1 id, $2 nonce, $3 state (2 completed, 3 failed), $4 retention, $5 outcome, $6 the lock timeout, $7 the channel.
-- Rules X-02, D-01.
WITH now AS MATERIALIZED (
    -- The time of the call, not of the beginning of the transaction. The setting ends with the transaction or its savepoint.
    SELECT SCHEMA.now_ms() AS ms, set_config('lock_timeout', $6, true)
)
UPDATE SCHEMA.record SET
    state = $3,
    -- An uncertain record had one.
    reason = 0,
    outcome = $5,
    updated_at = now.ms,
    lease_until = 0,
    -- The retention counts from the completion.
    expires_at = now.ms + $4
FROM now
-- One row, by the primary key: there is no order of locks to keep.
WHERE record.id = $1
    -- The fence: an attempt that was superseded, settled or whose record is gone changes nothing. If the row was locked, the
    -- server compares all of these conditions again with the row as it is then.
    AND record.nonce = $2
    -- A newer layout is left unchanged.
    AND record.version = 1
    -- In progress or uncertain; a finished or released record is final for its attempt. By CASE, from which the planner does
    -- not conclude that it could scan all open records.
    AND CASE record.state WHEN 1 THEN true WHEN 4 THEN true ELSE false END
    -- A damaged or edited row is left unchanged, and reported as unreadable by the statement that looks for the reason.
    AND record.seal = SCHEMA.seal_of(record.id, record.algorithm, record.fingerprint, record.namespace, record.principal,
        record.operation)
-- NOTIFY serializes all commits of the database, so only for watched records.
RETURNING record.id, CASE WHEN record.watched THEN pg_notify($7, encode(record.id, 'hex')) END
