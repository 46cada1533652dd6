//! One value of one option: read, or refused with the option's name and the way out.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use hapax_core::{JsonPointer, KeyFormat};
use http::header::COOKIE;
use http::{HeaderName, Method};

use super::{PrincipalNames, SettingsError, Span};
use crate::http::policy::is_coverable;
use crate::http::scope::{Credentials, Principal};
use crate::policy::SPAN_MAX;

pub(super) fn wrong(option: &'static str, why: impl fmt::Display) -> SettingsError {
    SettingsError { option, why: why.to_string() }
}

pub(super) fn without(option: &'static str, other: &str) -> SettingsError {
    wrong(option, format_args!("it changes nothing without `{other}`; say that too, or leave this out"))
}

pub(super) fn parsed<T>(option: &'static str, text: &str) -> Result<T, SettingsError>
where
    T: FromStr,
    T::Err: fmt::Display,
{
    text.parse().map_err(|error| wrong(option, format_args!("{text:?}: {error}")))
}

pub(super) fn header_name(option: &'static str, text: &str) -> Result<HeaderName, SettingsError> {
    let why = "is no header's name; write letters, digits and `-`";
    text.parse().map_err(|_| wrong(option, format_args!("{text:?} {why}")))
}

pub(super) fn header_names(option: &'static str, texts: &[String]) -> Result<Vec<HeaderName>, SettingsError> {
    texts.iter().map(|text| header_name(option, text)).collect()
}

pub(super) fn pointers(option: &'static str, texts: &[String]) -> Result<Vec<JsonPointer>, SettingsError> {
    texts.iter().map(|text| parsed(option, text)).collect()
}

/// The methods with effects, as they are registered: those of HTTP, and those of WebDAV and its extensions.
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

/// A method in any case. One that is misspelled would cover nothing, and its requests would run unprotected.
pub(super) fn coverable(text: &str) -> Result<Method, SettingsError> {
    let upper = text.to_ascii_uppercase();
    match upper.parse::<Method>() {
        Ok(method) if !is_coverable(&method) => {
            Err(wrong("methods", format_args!("{method} is never covered; leave it out")))
        }
        Ok(method) if METHODS.contains(&&*upper) => Ok(method),
        _ => Err(wrong(
            "methods",
            format_args!("there is no method {text:?} with an effect; write it as in \"POST\""),
        )),
    }
}

/// The shortest that a file can say.
pub(super) const MILLISECOND: Duration = Duration::from_millis(1);

pub(super) fn within(
    option: &'static str,
    Span(length): Span,
    shortest: Duration,
) -> Result<Duration, SettingsError> {
    if (shortest..=SPAN_MAX).contains(&length) {
        return Ok(length);
    }
    let (shortest, longest) = (Span(shortest), Span(SPAN_MAX));
    Err(wrong(option, format_args!("choose from {shortest} to {longest}")))
}

/// A limit of zero would refuse everything.
pub(super) fn at_least_one<T: Copy + Default + PartialEq>(
    option: &'static str,
    limit: Option<T>,
) -> Result<Option<T>, SettingsError> {
    match limit {
        Some(limit) if limit == T::default() => {
            Err(wrong(option, "choose at least 1, or leave it out for the default"))
        }
        limit => Ok(limit),
    }
}

#[cfg(feature = "regex")]
pub(super) fn key_pattern(pattern: &str) -> Result<KeyFormat, SettingsError> {
    let compile = |text: &str| {
        regex::Regex::new(text)
            .map_err(|error| wrong("key_pattern", format_args!("mend the regular expression: {error}")))
    };
    // Alone first: `a)|(b` is no expression, but would become one between the anchors.
    compile(pattern)?;
    let pattern = compile(&format!(r"\A(?:{pattern})\z"))?;
    let admits = std::sync::Arc::new(move |key: &str| pattern.is_match(key));
    Ok(KeyFormat::Custom { expected: "of the form that is asked for here", admits })
}

#[cfg(not(feature = "regex"))]
pub(super) fn key_pattern(_pattern: &str) -> Result<KeyFormat, SettingsError> {
    Err(wrong("key_pattern", "this build has no regular expressions; build it with the feature `regex`"))
}

/// What a caller says about itself counts only when something in front has checked it (S-02).
pub(super) fn principal_of(
    names: &PrincipalNames,
    credentials: &Credentials,
    is_verified: bool,
) -> Result<Principal, SettingsError> {
    let principal = match names {
        PrincipalNames::One(text) => parsed("principal", text)?,
        PrincipalNames::Several(texts) if texts.is_empty() => {
            return Err(wrong("principal", "name at least one source, or say `principal = \"none\"`"));
        }
        PrincipalNames::Several(texts) => {
            let sources = texts.iter().map(|text| parsed("principal", text));
            let sources = sources.collect::<Result<Vec<Principal>, _>>()?;
            if sources.len() > 1 && sources.iter().any(|source| matches!(source, Principal::None)) {
                return Err(wrong("principal", "`none` is no source of a list; leave it out"));
            }
            Principal::first_of(sources)
        }
    };
    if principal.must_be_verified(credentials) && !is_verified {
        return Err(wrong("principal", "say `principal_verified = true` when something in front checks it"));
    }
    Ok(principal)
}

/// Headers that hold nothing but credentials. A cookie header changes with every cookie that a site sets.
pub(super) fn credentials(names: &[String]) -> Result<Credentials, SettingsError> {
    const OPTION: &str = "credential_headers";
    let names = header_names(OPTION, names)?;
    if names.is_empty() {
        return Err(wrong(OPTION, "name at least one, or say `principal = \"none\"`"));
    }
    if names.contains(&COOKIE) {
        return Err(wrong(OPTION, "name the session cookie with `principal = \"cookie:NAME\"` instead"));
    }
    Ok(Credentials::new(names))
}
