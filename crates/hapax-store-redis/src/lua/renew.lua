-- KEYS[1] the record
-- ARGV[1] the attempt's nonce
-- ARGV[2] the lease in milliseconds
-- Rule X-03.

local record = load()
if record == false then return 'unreadable' end
if not record or record.nonce ~= ARGV[1] or record.state ~= IN_PROGRESS then return 'lost' end
extend(record, tonumber(ARGV[2]))
return 'applied'
