-- KEYS[1] the record
-- ARGV[1] the value that a first claim writes: nonce, fingerprint, names, and the spans of lease and retention
-- ARGV[2] '1' when a lapsed claim may be taken over
-- ARGV[3] the maximum number of attempts that may end without an outcome
-- Rules X-01 to X-04, F-01, D-01.

local ask = parse(ARGV[1])
local record = load()
if record == false or not ask then return {'unreadable'} end

-- Finished or released, and expired: the same as absent.
if record and not is_open(record) and record.expires_at <= now then record = nil end

local function acquire(before)
  local claim = {
    state = IN_PROGRESS, reason = 0, algorithm = ask.algorithm, digest = ask.digest, nonce = ask.nonce,
    attempt = 1, takeovers = 0, created_at = now, updated_at = now,
    expires_at = now + ask.expires_at, lease_until = now + ask.lease_until,
    names = ask.names, outcome = '',
  }
  if before then
    claim.attempt = math.min(before.attempt + 1, U32_MAX)
    claim.created_at = before.created_at
    if before.state ~= RELEASED then claim.takeovers = math.min(before.takeovers + 1, U32_MAX) end
  end
  save(claim)
  return {'acquired', claim.attempt}
end

local function replay() return {'replay', record.nonce, record.outcome, record.expires_at - now} end

local function uncertain() return {'uncertain', record.nonce, record.attempt, record.reason} end

if not record then return acquire(nil) end

-- The claim was applied before and its reply was lost, or this is a delayed copy of it.
if record.nonce == ask.nonce then
  if record.state == IN_PROGRESS then
    extend(record, ask.lease_until)
    return {'acquired', record.attempt}
  end
  if is_pinned(record) then return replay() end
  if record.state == UNCERTAIN then return uncertain() end
  -- Released: the attempt is over, and acquiring again would leave a claim without an owner.
  return {'busy', 0}
end

-- A released key is free, also for a request with another fingerprint.
if record.state == RELEASED then return acquire(record) end
if record.algorithm ~= ask.algorithm then return {'unreadable'} end
if record.digest ~= ask.digest then return {'mismatch'} end
if is_pinned(record) then return replay() end
if record.state == IN_PROGRESS and record.lease_until > now then return {'busy', record.lease_until - now} end

-- The lease has lapsed.
if ARGV[2] == '1' and record.takeovers + 1 < tonumber(ARGV[3]) then return acquire(record) end
if record.state == IN_PROGRESS then change(record, UNCERTAIN, LAPSED, record.expires_at, '') end
return uncertain()
