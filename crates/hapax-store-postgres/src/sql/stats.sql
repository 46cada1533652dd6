-- The number of records in each state at this time, and the size of the table with its indexes.
SELECT
    CASE WHEN state = 1 AND lease_until <= now.ms THEN 4::smallint ELSE state END AS state_now,
    count(*) AS records,
    pg_total_relation_size('SCHEMA.record'::regclass) AS bytes
FROM SCHEMA.record, (SELECT SCHEMA.now_ms() AS ms) AS now
GROUP BY 1
