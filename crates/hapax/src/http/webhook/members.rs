//! Strings at the top of a JSON object, and nothing else of it. Whatever else is there is skipped, not kept.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

use super::WebhookFault;

/// The members of these names, where they are there.
///
/// A member that is no string, or is there twice, leaves open which event is meant: two readers may take either.
/// So does text that is not UTF-8, which JSON never is.
pub(super) fn strings<const N: usize>(
    body: &[u8],
    names: [&'static str; N],
) -> Result<[Option<String>; N], WebhookFault> {
    let unclear = || WebhookFault::KeyUnclear { place: names.join("` and `").into() };
    let text = std::str::from_utf8(body).map_err(|_| unclear())?;
    let mut json = serde_json::Deserializer::from_str(text);
    let found = Members(names).deserialize(&mut json).map_err(|_| unclear())?;
    json.end().map_err(|_| unclear())?;
    Ok(found)
}

struct Members<const N: usize>([&'static str; N]);

impl<'de, const N: usize> DeserializeSeed<'de> for Members<N> {
    type Value = [Option<String>; N];

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de, const N: usize> Visitor<'de> for Members<N> {
    type Value = [Option<String>; N];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = [const { None }; N];
        while let Some(name) = map.next_key::<String>()? {
            let Some(at) = self.0.iter().position(|wanted| *wanted == name) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if found[at].replace(map.next_value()?).is_some() {
                return Err(A::Error::duplicate_field(self.0[at]));
            }
        }
        Ok(found)
    }
}
