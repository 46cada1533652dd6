-- KEYS[1] the record
-- ARGV[1] the nonce of the attempt that the caller has read
-- Rule D-07: a claim in progress is refused, because its owner would keep running while the key appears to be new.

local record = load()
if record == false then return 'unreadable' end
if not record then return 'absent' end
if record.nonce ~= ARGV[1] then return 'changed' end
if state_now(record) == IN_PROGRESS then return 'in_progress' end
redis.call('DEL', KEYS[1])
redis.pcall('PUBLISH', KEYS[1], '')
return 'applied'
