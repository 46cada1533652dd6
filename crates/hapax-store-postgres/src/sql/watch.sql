-- Marks a record for notification, while an attempt can change it. $1 id, $2 the lock timeout.
WITH now AS MATERIALIZED (SELECT set_config('lock_timeout', $2, true))
UPDATE SCHEMA.record SET watched = true
FROM now
WHERE id = $1 AND NOT watched
    -- Not a plain comparison, or the planner may scan all open records.
    AND CASE WHEN state IN (1, 4) THEN true ELSE false END
