//! The binary format of a response head: the metadata of a recorded HTTP outcome, specified in `spec/record-format.md`.
//!
//! The reader accepts arbitrary bytes. It copies no values, allocates no memory by an encoded length, and returns the
//! same error for every invalid input: [`Damaged`].

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, StatusCode};

const VERSION: u8 = 1;

/// The bytes are not a response head, or one of another version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::http) struct Damaged;

/// The section of the response that a field is in. The numbers are stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::http) enum FieldSection {
    Header = 1,
    Trailer = 2,
}

/// Capacity for the fields of most responses.
const HEAD_USUAL: usize = 256;

/// Encodes one head.
pub(in crate::http) struct HeadWriter(Vec<u8>);

impl HeadWriter {
    /// A head without fields. An empty `origin` means none.
    pub(in crate::http) fn new(status: StatusCode, origin: &[u8]) -> Self {
        let mut writer = Self(Vec::with_capacity(HEAD_USUAL));
        writer.0.push(VERSION);
        writer.0.extend_from_slice(&status.as_u16().to_be_bytes());
        writer.text(origin);
        writer
    }

    pub(in crate::http) fn field(&mut self, section: FieldSection, name: &HeaderName, value: &HeaderValue) {
        self.0.push(section as u8);
        self.text(name.as_str().as_bytes());
        self.text(value.as_bytes());
    }

    /// The encoded head and a copy of `body`, without spare capacity. The body may be a slice of a larger read buffer,
    /// and would keep all of that in memory as long as the record is kept.
    pub(in crate::http) fn finish(self, body: &[u8]) -> (Bytes, Bytes) {
        let mut meta = Bytes::from([&self.0, body].concat());
        let payload = meta.split_off(self.0.len());
        (meta, payload)
    }

    /// The length as a varint, seven bits a byte from the lowest, then the bytes.
    fn text(&mut self, text: &[u8]) {
        let mut rest = text.len();
        while rest >= 0x80 {
            self.0.push((rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        self.0.push(rest as u8);
        self.0.extend_from_slice(text);
    }
}

/// Decodes one head: an iterator over its fields.
pub(in crate::http) struct HeadReader<'a> {
    meta: &'a Bytes,
    rest: &'a [u8],
    status: StatusCode,
    origin: &'a [u8],
}

impl<'a> HeadReader<'a> {
    pub(in crate::http) fn new(meta: &'a Bytes) -> Result<Self, Damaged> {
        let [VERSION, high, low, rest @ ..] = &meta[..] else { return Err(Damaged) };
        let status = StatusCode::from_u16(u16::from_be_bytes([*high, *low])).map_err(|_| Damaged)?;
        if status.is_informational() {
            return Err(Damaged);
        }
        let mut reader = Self { meta, rest, status, origin: b"" };
        reader.origin = reader.text()?;
        Ok(reader)
    }

    pub(in crate::http) fn status(&self) -> StatusCode {
        self.status
    }

    /// The origin of the first request, if the response depends on it; empty otherwise.
    pub(in crate::http) fn origin(&self) -> &'a [u8] {
        self.origin
    }

    fn text(&mut self) -> Result<&'a [u8], Damaged> {
        let length = self.length()?;
        let (text, rest) = self.rest.split_at_checked(length).ok_or(Damaged)?;
        self.rest = rest;
        Ok(text)
    }

    fn length(&mut self) -> Result<usize, Damaged> {
        let mut length = 0;
        // Four bytes encode up to 256 MiB, more than any head has.
        for shift in [0, 7, 14, 21] {
            let (byte, rest) = self.rest.split_first().ok_or(Damaged)?;
            self.rest = rest;
            length |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(length);
            }
        }
        Err(Damaged)
    }

    fn field(&mut self, section: u8) -> Result<(FieldSection, HeaderName, HeaderValue), Damaged> {
        let section = [FieldSection::Header, FieldSection::Trailer]
            .into_iter()
            .find(|candidate| *candidate as u8 == section)
            .ok_or(Damaged)?;
        let name = match self.text()? {
            // Nearly every response has it, and often no other field.
            b"content-type" => CONTENT_TYPE,
            name => HeaderName::from_bytes(name).map_err(|_| Damaged)?,
        };
        let value = self.meta.slice_ref(self.text()?);
        let value = HeaderValue::from_maybe_shared(value).map_err(|_| Damaged)?;
        Ok((section, name, value))
    }
}

impl Iterator for HeadReader<'_> {
    type Item = Result<(FieldSection, HeaderName, HeaderValue), Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        let (section, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(self.field(*section))
    }
}
