//! [`Content`]: a body as a case writes it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use serde::Deserialize;

/// A body: text, or bytes in base 64, or a text many times over.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(try_from = "ContentFile")]
pub struct Content(pub Bytes);

#[derive(Deserialize)]
#[serde(untagged)]
enum ContentFile {
    Text(String),
    Base64(Base64File),
    Repeat(RepeatFile),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Base64File {
    base64: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RepeatFile {
    repeat: String,
    times: usize,
}

impl TryFrom<ContentFile> for Content {
    type Error = String;

    fn try_from(file: ContentFile) -> Result<Self, String> {
        /// No case needs more, and a typo should not fill the memory.
        const REPEATED_BYTES_MAX: usize = 64 << 20;
        Ok(Self(match file {
            ContentFile::Text(text) => text.into(),
            ContentFile::Base64(Base64File { base64 }) => {
                BASE64.decode(base64).map_err(|error| format!("`base64`: {error}"))?.into()
            }
            ContentFile::Repeat(RepeatFile { repeat, times }) => {
                if repeat.len().saturating_mul(times) > REPEATED_BYTES_MAX {
                    return Err(format!("`repeat` makes more than {REPEATED_BYTES_MAX} bytes"));
                }
                repeat.repeat(times).into()
            }
        }))
    }
}
