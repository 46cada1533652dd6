-- Asks to be told when a record changes, while there is somebody who can change it. $1 id, $2 how long to wait for the
-- row.
WITH now AS MATERIALIZED (SELECT set_config('lock_timeout', $2, true))
UPDATE SCHEMA.record SET watched = true
FROM now
WHERE id = $1 AND NOT watched
    -- Not plainly, or a planner may go through all open records.
    AND CASE WHEN state IN (1, 4) THEN true ELSE false END
