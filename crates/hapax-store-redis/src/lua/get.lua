-- KEYS[1] the record
-- Returns its value, its expiry and the time, read atomically.

return {redis.call('GET', KEYS[1]), expiry(), now}
