-- KEYS[1] the record
-- ARGV[1] the nonce of the attempt that the caller has read
-- ARGV[2] the settlement's nonce
-- ARGV[3] completed, failed or released
-- ARGV[4] the retention in milliseconds
-- ARGV[5] the outcome; empty if there is none
-- Rule D-07.

local record = load()
if record == false then return {'unreadable'} end
if not record then return {'absent'} end
if record.nonce == ARGV[2] then
  touch(record)
  return {'applied'}
end
local state = state_now(record)
if state ~= UNCERTAIN then return {'not_uncertain', state} end
if record.nonce ~= ARGV[1] then return {'changed'} end
-- This fences out the settled attempt.
record.nonce = ARGV[2]
change(record, tonumber(ARGV[3]), 0, now + tonumber(ARGV[4]), ARGV[5])
return {'applied'}
