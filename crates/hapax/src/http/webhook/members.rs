//! Reads one value of a JSON text. All other values are skipped, not stored.

use std::fmt;

use hapax_core::JsonPointer;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The value is ambiguous or has another type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct AmbiguousMember;

/// The string or the integer at `pointer`, as text; `None` if the text has no such member.
///
/// It is an error if a member on the path is repeated, because parsers differ in which one they take, if the value has
/// another type, or if the text is not UTF-8, as JSON must be.
pub(super) fn text_at(body: &[u8], pointer: &JsonPointer) -> Result<Option<String>, AmbiguousMember> {
    let text = std::str::from_utf8(body).map_err(|_| AmbiguousMember)?;
    let pointer = pointer.to_string();
    // In this order: ~01 is ~1, not /.
    let names: Vec<String> =
        pointer.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~")).collect();
    let mut json = serde_json::Deserializer::from_str(text);
    let found = MemberSeed(&names).deserialize(&mut json).map_err(|_| AmbiguousMember)?;
    json.end().map_err(|_| AmbiguousMember)?;
    Ok(found)
}

/// The rest of the path.
#[derive(Clone, Copy)]
struct MemberSeed<'a>(&'a [String]);

impl<'de> DeserializeSeed<'de> for MemberSeed<'_> {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for MemberSeed<'_> {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "a string or a whole number" } else { "an object or an array" })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let Some((wanted, rest)) = self.0.split_first() else {
            return Err(A::Error::custom("an object"));
        };
        let mut found = None;
        while let Some(name) = map.next_key::<String>()? {
            if name != *wanted {
                map.next_value::<IgnoredAny>()?;
            } else if found.replace(map.next_value_seed(MemberSeed(rest))?).is_some() {
                return Err(A::Error::custom("a name is repeated"));
            }
        }
        Ok(found.flatten())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let Some((wanted, rest)) = self.0.split_first() else {
            return Err(A::Error::custom("an array"));
        };
        let wanted: usize = wanted.parse().map_err(|_| A::Error::custom("an array"))?;
        for _ in 0..wanted {
            if items.next_element::<IgnoredAny>()?.is_none() {
                return Ok(None);
            }
        }
        let found = items.next_element_seed(MemberSeed(rest))?.flatten();
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(found)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
        self.value(text)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Self::Value, E> {
        self.value(&number.to_string())
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Self::Value, E> {
        self.value(&number.to_string())
    }
}

impl MemberSeed<'_> {
    fn value<E: serde::de::Error>(self, text: &str) -> Result<Option<String>, E> {
        if self.0.is_empty() { Ok(Some(text.to_owned())) } else { Err(E::custom("a value without members")) }
    }
}
