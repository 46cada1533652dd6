-- KEYS[1] the record
-- ARGV[1] the attempt's nonce
-- ARGV[2] completed or failed
-- ARGV[3] the retention in milliseconds
-- ARGV[4] the outcome
-- Rules X-02, D-01, D-04: final, and accepted as long as the record holds the attempt's nonce.

local record = load()
if record == false then return 'unreadable' end
if not record or record.nonce ~= ARGV[1] or record.state == RELEASED then return 'lost' end
if is_pinned(record) then
  touch(record)
  return 'applied'
end
change(record, tonumber(ARGV[2]), 0, now + tonumber(ARGV[3]), ARGV[4])
return 'applied'
