-- KEYS[1] the generation mark
-- ARGV[1] the id of a new generation; empty if none may be created
-- Returns the id of this generation of data, a counter that grows with every call, and the time. A process that saw a
-- greater counter before knows that writes were lost.

-- It changes nothing, but a later write of a script is not refused for lack of memory if an earlier one succeeded.
if NEEDS_NO_ROOM then redis.pcall('PERSIST', KEYS[1]) end
if ARGV[1] ~= '' then redis.call('HSETNX', KEYS[1], 'id', ARGV[1]) end
local id = redis.call('HGET', KEYS[1], 'id')
if not id then return {false, 0, now} end
return {id, redis.call('HINCRBY', KEYS[1], 'pulse', 1), now}
