//! Hash slots: the slot of a key, and which member owns which slots.
//!
//! Pure: it parses replies and computes. It sends nothing.

use redis::Value;

use crate::address::Host;

/// The number of slots in a cluster.
pub(crate) const SLOTS: u16 = 16384;

/// The keys a server is responsible for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum SlotSet {
    /// All keys: it is not a cluster member.
    All,
    /// The keys in these slots, as inclusive ranges in ascending order.
    Ranges(Vec<(u16, u16)>),
}

impl SlotSet {
    /// That of a member which owns no slots, or whose slots are unknown.
    pub(crate) fn none() -> Self {
        Self::Ranges(Vec::new())
    }

    pub(crate) fn is_member(&self) -> bool {
        matches!(self, Self::Ranges(_))
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Ranges(ranges) if ranges.is_empty())
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        match self {
            Self::All => true,
            Self::Ranges(ranges) => {
                let slot = slot_of(key.as_bytes());
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&slot))
            }
        }
    }

    /// The lowest slot, if there is any.
    pub(crate) fn lowest(&self) -> Option<u16> {
        match self {
            Self::All => None,
            Self::Ranges(ranges) => ranges.iter().map(|(first, _)| *first).min(),
        }
    }
}

/// The slot of a key: that of its hash tag, the part between the first opening brace and the next closing one, if not empty.
pub(crate) fn slot_of(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|byte| *byte == b'}')?;
        (close > 0).then_some(&rest[..close])
    });
    crc16(tag.unwrap_or(key)) % SLOTS
}

/// The smallest number whose decimal digits hash to `slot`. Every slot has one below a few hundred thousand.
pub(crate) fn number_in(slot: u16) -> u32 {
    let is_in = |number: &u32| slot_of(number.to_string().as_bytes()) == slot % SLOTS;
    (0..).find(is_in).unwrap_or_default()
}

/// CRC-16/XMODEM: polynomial 0x1021, initial value zero.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}

/// A primary with its slot ranges.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Primary {
    pub(crate) host: Host,
    pub(crate) ranges: Vec<(u16, u16)>,
}

/// Parses the reply to `CLUSTER SLOTS`. A member that does not know its own address omits it; that member is `queried`.
/// None if the reply is malformed.
pub(crate) fn parse(answer: &Value, queried: &Host) -> Option<Vec<Primary>> {
    let Value::Array(ranges) = answer else { return None };
    let mut primaries: Vec<Primary> = Vec::new();
    for range in ranges {
        let Value::Array(parts) = range else { return None };
        let [Value::Int(first), Value::Int(last), Value::Array(primary), ..] = parts.as_slice() else {
            return None;
        };
        let (first, last) = (slot(*first)?, slot(*last)?);
        let host = host(primary, queried)?;
        match primaries.iter_mut().find(|known| known.host == host) {
            Some(known) => known.ranges.push((first, last)),
            None => primaries.push(Primary { host, ranges: vec![(first, last)] }),
        }
    }
    for primary in &mut primaries {
        primary.ranges.sort_unstable();
    }
    Some(primaries)
}

fn slot(number: i64) -> Option<u16> {
    u16::try_from(number).ok().filter(|slot| *slot < SLOTS)
}

fn host(primary: &[Value], queried: &Host) -> Option<Host> {
    let [name, Value::Int(port), ..] = primary else { return None };
    let port = u16::try_from(*port).ok()?;
    let name = match name {
        Value::BulkString(name) => std::str::from_utf8(name).ok()?,
        Value::SimpleString(name) => name,
        Value::Nil => "",
        _ => return None,
    };
    Some((known_or(name, &queried.0), port))
}

/// Parses a redirection: `host:port`, or `:port` for the host that was `queried`.
pub(crate) fn redirected(to: &str, queried: &Host) -> Option<Host> {
    let (name, port) = to.rsplit_once(':')?;
    Some((known_or(name, &queried.0), port.parse().ok()?))
}

fn known_or(name: &str, queried: &str) -> String {
    if name.is_empty() || name == "?" { queried.to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests;
