-- KEYS[1] the record
-- ARGV[1] the nonce of the attempt that was looked at
-- ARGV[2] the settlement's nonce
-- ARGV[3] completed, failed or released
-- ARGV[4] how long the record stays, in milliseconds
-- ARGV[5] the outcome; empty when there is none
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
-- From here on the attempt that was settled is fenced out.
record.nonce = ARGV[2]
change(record, tonumber(ARGV[3]), 0, now + tonumber(ARGV[4]), ARGV[5])
return {'applied'}
