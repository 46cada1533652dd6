-- The settings that decide whether a server can be a store, and what can be promised on it.
SELECT
    current_setting('server_version_num')::integer AS version,
    pg_is_in_recovery() AS is_standby,
    current_setting('transaction_read_only') = 'on' AS is_read_only,
    current_setting('fsync') = 'on' AS has_fsync,
    current_setting('full_page_writes') = 'on' AS has_full_pages,
    current_setting('synchronous_commit') AS commits,
    current_setting('synchronous_standby_names') <> '' AS has_synchronous_standbys,
    (SELECT count(*) FROM pg_stat_replication) AS standbys
