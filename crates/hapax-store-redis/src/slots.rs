//! Hash slots: which one a key is in, and who has which.
//!
//! Pure: it reads what a member of a cluster says and computes. It sends nothing.

use redis::Value;

use crate::address::Host;

/// How many slots a cluster has.
pub(crate) const SLOTS: u16 = 16384;

/// What a server is responsible for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Territory {
    /// All keys: it is no member of a cluster.
    Everything,
    /// The keys in these slots, as ranges with both ends, in ascending order.
    Slots(Vec<(u16, u16)>),
}

impl Territory {
    /// That of a member which has no slots, or of which nobody has told any.
    pub(crate) fn none() -> Self {
        Self::Slots(Vec::new())
    }

    pub(crate) fn is_member(&self) -> bool {
        matches!(self, Self::Slots(_))
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Slots(ranges) if ranges.is_empty())
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Slots(ranges) => {
                let slot = slot_of(key.as_bytes());
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&slot))
            }
        }
    }

    /// The lowest slot, for a member that has any.
    pub(crate) fn lowest(&self) -> Option<u16> {
        match self {
            Self::Everything => None,
            Self::Slots(ranges) => ranges.iter().map(|(first, _)| *first).min(),
        }
    }
}

/// The slot of a key: that of the part between the first brace and the next closing one, where there is such a part.
pub(crate) fn slot_of(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|byte| *byte == b'}')?;
        (close > 0).then_some(&rest[..close])
    });
    crc16(tag.unwrap_or(key)) % SLOTS
}

/// The first number whose digits are in `slot`. Among a few hundred thousand there is one for each.
pub(crate) fn number_in(slot: u16) -> u32 {
    let is_in = |number: &u32| slot_of(number.to_string().as_bytes()) == slot % SLOTS;
    (0..).find(is_in).unwrap_or_default()
}

/// The checksum that clusters use: polynomial 0x1021, beginning with zero.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}

/// A primary with the ranges of its slots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Primary {
    pub(crate) host: Host,
    pub(crate) ranges: Vec<(u16, u16)>,
}

/// Reads the answer to `CLUSTER SLOTS`. A member that does not know its own address leaves
/// it out; it is the one that was `asked`. None when it is no such answer.
pub(crate) fn parse(answer: &Value, asked: &Host) -> Option<Vec<Primary>> {
    let Value::Array(ranges) = answer else { return None };
    let mut primaries: Vec<Primary> = Vec::new();
    for range in ranges {
        let Value::Array(parts) = range else { return None };
        let [Value::Int(first), Value::Int(last), Value::Array(primary), ..] = parts.as_slice() else {
            return None;
        };
        let (first, last) = (slot(*first)?, slot(*last)?);
        let host = host(primary, asked)?;
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

fn host(primary: &[Value], asked: &Host) -> Option<Host> {
    let [name, Value::Int(port), ..] = primary else { return None };
    let port = u16::try_from(*port).ok()?;
    let name = match name {
        Value::BulkString(name) => std::str::from_utf8(name).ok()?,
        Value::SimpleString(name) => name,
        Value::Nil => "",
        _ => return None,
    };
    Some((known_or(name, &asked.0), port))
}

/// Where a redirection leads: `host:port`, and `:port` on the machine that was `asked`.
pub(crate) fn redirected(to: &str, asked: &Host) -> Option<Host> {
    let (name, port) = to.rsplit_once(':')?;
    Some((known_or(name, &asked.0), port.parse().ok()?))
}

fn known_or(name: &str, asked: &str) -> String {
    if name.is_empty() || name == "?" { asked.to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests;
