-- KEYS[1] the record
-- ARGV[1] the attempt's nonce
-- ARGV[2] the reason's code
-- Rule X-07.

local record = load()
if record == false then return 'unreadable' end
if not record or record.nonce ~= ARGV[1] or not is_open(record) then return 'lost' end
if record.state == UNCERTAIN then
  touch(record)
  return 'applied'
end
change(record, UNCERTAIN, tonumber(ARGV[2]), record.expires_at, '')
return 'applied'
