//! [`Text`]: a value that is written as text in files.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use hapax_core::JsonPointer;
use http::{HeaderName, Method};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::http::classify::StatusSet;
use crate::http::key_place::KeyPlace;
use crate::http::limits::Rate;
use crate::http::policy::is_coverable;
use crate::http::problem::Code;

/// A value that is written as text in files: a header name, a method, a JSON pointer, statuses, a rate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Text<T>(pub T);

/// How the value is parsed from text and formatted as text.
pub(crate) trait TextValue: Sized + fmt::Display {
    /// The value, or what is wrong with the text and what to write instead.
    fn read(text: &str) -> Result<Self, String>;
}

impl TextValue for HeaderName {
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| format!("{text:?} is not a header name; write letters, digits and `-`"))
    }
}

impl TextValue for JsonPointer {
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error| format!("{text:?}: {error}"))
    }
}

impl TextValue for KeyPlace {
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: crate::http::KeyPlaceError| error.to_string())
    }
}

impl TextValue for StatusSet {
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: crate::http::StatusSetError| error.to_string())
    }
}

impl TextValue for Rate {
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error| format!("{text:?}: {error}"))
    }
}

impl TextValue for Code {
    fn read(text: &str) -> Result<Self, String> {
        Self::from_name(text).ok_or_else(|| {
            format!("unknown problem {text:?}; the problems are {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}

/// The registered methods with effects: those of HTTP, and those of WebDAV and its extensions.
const METHODS: [&str; 30] = [
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "ACL",
    "BASELINE-CONTROL",
    "BIND",
    "CHECKIN",
    "CHECKOUT",
    "COPY",
    "LABEL",
    "LINK",
    "LOCK",
    "MERGE",
    "MKACTIVITY",
    "MKCALENDAR",
    "MKCOL",
    "MKREDIRECTREF",
    "MKWORKSPACE",
    "MOVE",
    "ORDERPATCH",
    "PROPPATCH",
    "REBIND",
    "UNBIND",
    "UNCHECKOUT",
    "UNLINK",
    "UNLOCK",
    "UPDATE",
    "UPDATEREDIRECTREF",
    "VERSION-CONTROL",
];

impl TextValue for Method {
    /// In any case. A misspelled method would cover nothing, and its requests would run unprotected.
    fn read(text: &str) -> Result<Self, String> {
        let upper = text.to_ascii_uppercase();
        match upper.parse::<Self>() {
            Ok(method) if !is_coverable(&method) => Err(format!("{method} is never covered; leave it out")),
            Ok(method) if METHODS.contains(&&*upper) => Ok(method),
            _ => Err(format!("{text:?} is not a method with effects; write it as in \"POST\"")),
        }
    }
}

impl<T> Deref for Text<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: PartialEq<str>> PartialEq<&str> for Text<T> {
    fn eq(&self, text: &&str) -> bool {
        self.0 == **text
    }
}

impl<T> From<T> for Text<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T: fmt::Display> fmt::Display for Text<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de, T: TextValue> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor<T>(PhantomData<T>);

        impl<T: TextValue> Visitor<'_> for TextVisitor<T> {
            type Value = Text<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Text<T>, E> {
                T::read(text).map(Text).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(TextVisitor(PhantomData))
    }
}

impl<T: fmt::Display> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

#[cfg(feature = "schema")]
impl<T> schemars::JsonSchema for Text<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}
