//! The Host check.
//!
//! A web page can let its host name resolve to this machine (DNS rebinding), and its requests would then count as
//! same-origin. It cannot change the Host field, so unknown host names are refused.

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;
use http::header::HOST;
use http::uri::Authority;

/// The accepted host names.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    names: Vec<String>,
    /// Whether the listener is reachable from other machines, which may use any address of this one.
    is_exposed: bool,
}

impl Hosts {
    pub(crate) fn new(listen: SocketAddr, configured: &[String]) -> Self {
        let names = configured.iter().map(|name| name.to_ascii_lowercase()).collect();
        Self { names, is_exposed: !listen.ip().is_loopback() }
    }

    /// Whether the host name of the request is accepted. An address cannot be rebound.
    pub(crate) fn accepts(&self, headers: &HeaderMap) -> bool {
        let mut values = headers.get_all(HOST).iter();
        let (Some(value), None) = (values.next(), values.next()) else { return false };
        let Ok(authority) = Authority::try_from(value.as_bytes()) else { return false };
        if authority.as_str().contains('@') {
            return false;
        }
        let host = authority.host().to_ascii_lowercase();
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(&host);
        match bare.parse::<IpAddr>() {
            Ok(address) => address.is_loopback() || self.is_exposed,
            Err(_) => host == "localhost" || self.names.contains(&host),
        }
    }
}

#[cfg(test)]
mod tests;
