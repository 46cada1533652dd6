//! [`Typed`]: the URL of a server as it was typed, and what it says. It is never shown as typed: it may hold a password.

use std::error::Error;
use std::fmt;

use hapax_core::StoreError;

/// A URL and the options in it. Its `Display` leaves out what must not be shown, and so does `Debug`.
#[derive(Clone)]
pub(crate) struct Typed<O> {
    typed: String,
    pub(super) options: O,
}

impl<O> Typed<O> {
    /// What the store made of the URL; otherwise its own words about what is wrong, which do not repeat it.
    pub(super) fn read(url: &str, options: Result<O, StoreError>) -> Result<Self, String> {
        match options {
            Ok(options) => Ok(Self { typed: url.to_owned(), options }),
            Err(error) => Err(error.source().map_or_else(|| error.to_string(), ToString::to_string)),
        }
    }

    /// What was typed, passwords and all.
    pub(super) fn typed(&self) -> &str {
        &self.typed
    }
}

/// Whether one of the `hosts` of a URL, written `HOST:PORT,HOST:PORT/…`, is on another machine. A path is a socket here.
#[cfg(any(feature = "postgres", feature = "redis"))]
pub(super) fn is_elsewhere(hosts: &str) -> bool {
    hosts.split(',').any(|host| {
        let host = host.split('/').next().unwrap_or_default();
        !host.is_empty() && crate::config::is_elsewhere(host.rsplit_once(':').map_or(host, |(name, _)| name))
    })
}

/// The value of an option in the query of a URL.
#[cfg(any(feature = "dynamodb", feature = "postgres"))]
pub(super) fn option<'a>(url: &'a str, name: &str) -> Option<&'a str> {
    let (_, query) = url.split_once('?')?;
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(known, _)| *known == name)
        .map(|(_, value)| value)
}

/// What the store has to say about an error of its own.
pub(super) fn cause<E: Error + 'static>(error: &StoreError) -> Option<&E> {
    error.source().and_then(|cause| cause.downcast_ref())
}

impl<O> PartialEq for Typed<O> {
    fn eq(&self, other: &Self) -> bool {
        self.typed == other.typed
    }
}

impl<O> Eq for Typed<O> {}

impl<O> fmt::Debug for Typed<O>
where
    Self: fmt::Display,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Typed({self})")
    }
}
