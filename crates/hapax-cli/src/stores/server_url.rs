//! [`ServerUrl`]: the URL of a server and the options in it. It may contain a password, so it is never printed unchanged.

use std::error::Error;
use std::fmt;

use hapax_core::StoreError;

/// A URL and the options in it. `Display` and `Debug` leave out secrets.
#[derive(Clone)]
pub(crate) struct ServerUrl<O> {
    url: String,
    pub(super) options: O,
}

impl<O> ServerUrl<O> {
    /// Takes the parsed options, or the store's error message, which does not repeat the URL.
    pub(super) fn read(url: &str, options: Result<O, StoreError>) -> Result<Self, String> {
        match options {
            Ok(options) => Ok(Self { url: url.to_owned(), options }),
            Err(error) => Err(error.source().map_or_else(|| error.to_string(), ToString::to_string)),
        }
    }

    /// The unchanged URL, with passwords.
    pub(super) fn as_str(&self) -> &str {
        &self.url
    }
}

/// Whether one of the `hosts` of a URL, written `HOST:PORT,HOST:PORT/…`, is on another machine. A path is a socket here.
#[cfg(any(feature = "postgres", feature = "redis"))]
pub(super) fn is_remote(hosts: &str) -> bool {
    hosts.split(',').any(|host| {
        let host = host.split('/').next().unwrap_or_default();
        !host.is_empty() && crate::config::is_remote(host.rsplit_once(':').map_or(host, |(name, _)| name))
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

/// The store's own error behind a store error.
pub(super) fn cause<E: Error + 'static>(error: &StoreError) -> Option<&E> {
    error.source().and_then(|cause| cause.downcast_ref())
}

impl<O> PartialEq for ServerUrl<O> {
    fn eq(&self, other: &Self) -> bool {
        self.url == other.url
    }
}

impl<O> Eq for ServerUrl<O> {}

impl<O> fmt::Debug for ServerUrl<O>
where
    Self: fmt::Display,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerUrl({self})")
    }
}
