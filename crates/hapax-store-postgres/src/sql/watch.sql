-- Asks to be told when a record changes, while there is somebody who can change it. $1 id.
UPDATE SCHEMA.record SET watched = true WHERE id = $1 AND NOT watched AND state IN (1, 4)
