-- KEYS[1] the record
-- ARGV[1] the attempt's nonce
-- ARGV[2] the retention of the tombstone in milliseconds
-- ARGV[3] the attempt's outcome; empty if there is none
-- Rule X-09.

local record = load()
if record == false then return 'unreadable' end
if not record or record.nonce ~= ARGV[1] or is_pinned(record) then return 'lost' end
if record.state == RELEASED then
  touch(record)
  return 'applied'
end
change(record, RELEASED, 0, now + tonumber(ARGV[2]), ARGV[3])
return 'applied'
