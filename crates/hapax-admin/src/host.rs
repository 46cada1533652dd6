//! Under which names the admin listener may be asked.
//!
//! A page on the internet can let its own name point to this machine (DNS rebinding) and would then count as the same
//! origin. It cannot change the name that the browser sends, so names that are not ours are refused.

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;
use http::header::HOST;
use http::uri::Authority;

/// The names that are ours.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    names: Vec<String>,
    /// Whether the listener is reachable from other machines, where it has addresses that nobody can list.
    is_exposed: bool,
}

impl Hosts {
    pub(crate) fn new(listen: SocketAddr, configured: &[String]) -> Self {
        let names = configured.iter().map(|name| name.to_ascii_lowercase()).collect();
        Self { names, is_exposed: !listen.ip().is_loopback() }
    }

    /// Whether a request with these headers was meant for us. An address cannot be rebound, a name can.
    pub(crate) fn admit(&self, headers: &HeaderMap) -> bool {
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
