-- The common prefix of all scripts: the time, and the record in KEYS[1] as layout.rs writes it.
-- The rules themselves are those of hapax-core's transition.rs.
-- NEEDS_NO_ROOM is set before Redis 7 for scripts that must also work when memory is full. Such a server refuses only the
-- first write of a script, if that may take memory.

local HEAD = '>BBBBc16I4I4I8I8I8I8c32I4'
local HEAD_BYTES, SEAL_BYTES, VERSION = 96, 16, 1
local IN_PROGRESS, COMPLETED, FAILED, UNCERTAIN, RELEASED = 1, 2, 3, 4, 5
local LAPSED = 1
local U32_MAX = 4294967295

-- Only the server's clock decides.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- The key's expiry. Before Redis 7 there is no command for it.
local function expiry()
  local at = redis.pcall('PEXPIRETIME', KEYS[1])
  if type(at) == 'number' then return at end
  local left = redis.call('PTTL', KEYS[1])
  return left < 0 and left or now + left
end

-- The seal is bound to one record: the id at the end of the key is part of it.
local function seal(head, names)
  return string.sub(redis.sha1hex(head .. string.sub(KEYS[1], -64) .. names), 1, SEAL_BYTES)
end

-- Parses a value into a table; nil if its seal does not match.
local function parse(value)
  if #value < HEAD_BYTES + SEAL_BYTES then return nil end
  local head = string.sub(value, 1, HEAD_BYTES)
  local record, version, names_bytes = {}, nil, nil
  version, record.state, record.reason, record.algorithm, record.nonce, record.attempt, record.takeovers,
    record.created_at, record.updated_at, record.expires_at, record.lease_until, record.digest, names_bytes =
    struct.unpack(HEAD, head)
  local names_at = HEAD_BYTES + SEAL_BYTES + 1
  record.names = string.sub(value, names_at, names_at + names_bytes - 1)
  record.outcome = string.sub(value, names_at + names_bytes)
  local found = string.sub(value, HEAD_BYTES + 1, HEAD_BYTES + SEAL_BYTES)
  if version ~= VERSION or #record.names ~= names_bytes or found ~= seal(head, record.names) then return nil end
  return record
end

-- The record: nil if absent, false if unreadable. An unreadable record is not absent.
local function load()
  local value = redis.call('GET', KEYS[1])
  if not value then return nil end
  local record = parse(value)
  if not record then return false end
  if record.created_at == 0 then
    -- A first claim, which knew no time: it holds spans, and the longer one is the key's time to live.
    local at = expiry()
    if at < 0 then return false end
    record.created_at = at - math.max(record.expires_at, record.lease_until)
    record.updated_at = record.created_at
    record.expires_at = record.created_at + record.expires_at
    record.lease_until = record.created_at + record.lease_until
  end
  return record
end

-- The record's expiry; never before the end of a live lease.
local function drop_at(record)
  return string.format('%.0f', math.max(record.expires_at, record.lease_until, now + 1))
end

-- Stores the record.
local function save(record)
  local head = struct.pack(HEAD, VERSION, record.state, record.reason, record.algorithm, record.nonce,
    record.attempt, record.takeovers, record.created_at, record.updated_at, record.expires_at,
    record.lease_until, record.digest, #record.names)
  local value = head .. seal(head, record.names) .. record.names .. record.outcome
  if NEEDS_NO_ROOM then redis.call('PEXPIREAT', KEYS[1], drop_at(record)) end
  redis.call('SET', KEYS[1], value, 'PXAT', drop_at(record))
end

-- Extends the lease to `lease` from now, and the retention of an uncertain record with it.
local function extend(record, lease)
  local extended_until = now + lease
  record.expires_at = record.expires_at + math.max(0, extended_until - record.lease_until)
  record.lease_until = extended_until
  save(record)
end

-- Changes the record's state and notifies watchers. A notification is a hint: without the permission to publish nothing
-- else is lost.
local function change(record, state, reason, expires_at, outcome)
  record.state, record.reason, record.lease_until = state, reason, 0
  record.updated_at, record.expires_at, record.outcome = now, expires_at, outcome
  save(record)
  redis.pcall('PUBLISH', KEYS[1], '')
end

-- Changes nothing, because it was done before. The key is still written, so that WAIT on this connection covers a write
-- from another one. The expiry comes from the record: a key that was persisted has none of its own.
local function touch(record)
  redis.call('PEXPIREAT', KEYS[1], drop_at(record))
end

local function is_pinned(record) return record.state == COMPLETED or record.state == FAILED end

local function is_open(record) return record.state == IN_PROGRESS or record.state == UNCERTAIN end

-- The state at this time: a claim whose lease has lapsed is uncertain.
local function state_now(record)
  if record.state == IN_PROGRESS and record.lease_until <= now then return UNCERTAIN end
  return record.state
end
