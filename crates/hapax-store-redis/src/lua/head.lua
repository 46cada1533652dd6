-- KEYS[1] the record
-- Returns its value without the outcome, its expiry, the time, and the length of the value.

local head = redis.call('GETRANGE', KEYS[1], 0, HEAD_BYTES + SEAL_BYTES - 1)
local names = ''
if #head == HEAD_BYTES + SEAL_BYTES then
  local names_bytes = struct.unpack('>I4', head, HEAD_BYTES - 3)
  if names_bytes > 0 then
    local names_at = HEAD_BYTES + SEAL_BYTES
    names = redis.call('GETRANGE', KEYS[1], names_at, names_at + names_bytes - 1)
  end
end
return {head .. names, expiry(), now, redis.call('STRLEN', KEYS[1])}
