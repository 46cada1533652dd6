-- KEYS[1] the generation mark
-- ARGV[1] the id of a new generation; empty when none is to be made
-- Which generation of data this is, a number that has grown since it was last asked for, and the time. Whoever saw a
-- greater number knows that writes were lost.

-- It changes nothing, but what a script writes after another write is not refused for want of memory.
if NEEDS_NO_ROOM then redis.pcall('PERSIST', KEYS[1]) end
if ARGV[1] ~= '' then redis.call('HSETNX', KEYS[1], 'id', ARGV[1]) end
local id = redis.call('HGET', KEYS[1], 'id')
if not id then return {false, 0, now} end
return {id, redis.call('HINCRBY', KEYS[1], 'pulse', 1), now}
