-- KEYS[1] the record
-- Its value, when the server drops it, and the time, all of one moment.

return {redis.call('GET', KEYS[1]), expiry(), now}
