//! The variables that Kubernetes sets in every pod for each Service of its namespace ("service links"), such as
//! `HAPAX_PORT=tcp://10.0.0.1:80` for a Service named `hapax`. They have the prefix of options, but are none.

use std::net::{IpAddr, SocketAddr};

const PROTOCOLS: [&str; 3] = ["tcp", "udp", "sctp"];

/// Whether a variable is a service link: both the name and the value have the form of one.
pub(super) fn is_service_link(name: &str, value: &str) -> bool {
    match value_of(name) {
        Some(LinkValue::Address) => value.parse::<IpAddr>().is_ok(),
        Some(LinkValue::Port) => value.parse::<u16>().is_ok(),
        Some(LinkValue::Protocol) => PROTOCOLS.contains(&value),
        Some(LinkValue::Url) => value.split_once("://").is_some_and(|(protocol, address)| {
            PROTOCOLS.contains(&protocol) && address.parse::<SocketAddr>().is_ok()
        }),
        None => false,
    }
}

/// The type of a service link's value.
enum LinkValue {
    Address,
    Port,
    Protocol,
    /// `tcp://10.0.0.1:80`.
    Url,
}

/// The type that the name of a service link implies; none for other names.
fn value_of(name: &str) -> Option<LinkValue> {
    let words: Vec<&str> = name.split('_').collect();
    let is_port = |number: &str, protocol: &str| {
        number.parse::<u16>().is_ok() && PROTOCOLS.contains(&protocol.to_ascii_lowercase().as_str())
    };
    match words[..] {
        [.., "SERVICE", "HOST"] => Some(LinkValue::Address),
        [.., "SERVICE", "PORT"] => Some(LinkValue::Port),
        [.., "PORT", number, protocol] if is_port(number, protocol) => Some(LinkValue::Url),
        [.., "PORT", number, protocol, "PROTO"] if is_port(number, protocol) => Some(LinkValue::Protocol),
        [.., "PORT", number, protocol, "PORT"] if is_port(number, protocol) => Some(LinkValue::Port),
        [.., "PORT", number, protocol, "ADDR"] if is_port(number, protocol) => Some(LinkValue::Address),
        // The name of a port may consist of several words.
        _ if name.contains("_SERVICE_PORT_") => Some(LinkValue::Port),
        [.., "PORT"] => Some(LinkValue::Url),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::schema::known;
    use super::*;

    #[test]
    fn no_option_has_the_form_of_a_service_link() {
        let variables = known().iter().filter_map(|known| known.variable());
        let taken: Vec<String> = variables.filter(|name| value_of(name).is_some()).collect();
        assert_eq!(taken, [""; 0]);
    }
}
