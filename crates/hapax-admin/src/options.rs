//! The options of the admin listener, as a section of the configuration.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use hapax::http::settings::Span;
use hapax::http::settings::size::{self, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::token::Token;

/// The section `[admin]` of the configuration.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AdminOptions {
    /// The listen address, or `off`. Any address but loopback requires a token.
    pub listen: AdminListen,
    /// A file with the token of the API and the console. Without a token, a random one is generated at every start.
    pub token_file: Option<PathBuf>,
    /// Accepted host names, beside `localhost` and addresses.
    pub hosts: Vec<String>,
    /// The most concurrent connections. A new one replaces one without a request in progress.
    pub connections_max: usize,
    /// The largest request body.
    #[serde(deserialize_with = "size::deserialize")]
    #[schemars(with = "Size")]
    pub body_bytes_max: usize,
    /// The timeout for the head of a request.
    #[schemars(with = "String")]
    pub header_time: Span,
    /// The timeout of a request as a whole.
    #[schemars(with = "String")]
    pub request_time: Span,
    /// With fewer free bytes on the store's disk the process is not ready.
    #[serde(deserialize_with = "size::deserialize")]
    #[schemars(with = "Size")]
    pub disk_free_min: u64,
    /// The interval at which records are counted for the metrics. A large store takes a while to count.
    #[schemars(with = "String")]
    pub count_every: Span,
    /// The directory of the audit log. By default that of the store if it has one, `./hapax-audit` for a server.
    pub audit_dir: Option<PathBuf>,
    /// The size at which the audit log is rotated. Rotated files are never removed.
    #[serde(deserialize_with = "size::deserialize")]
    #[schemars(with = "Size")]
    pub audit_bytes_max: u64,
    /// The token itself, from the environment. It is not an option of the file, and is never shown.
    #[serde(skip)]
    #[schemars(skip)]
    pub token: Option<Token>,
}

impl Default for AdminOptions {
    fn default() -> Self {
        Self {
            listen: AdminListen::default(),
            token_file: None,
            hosts: Vec::new(),
            connections_max: 256,
            body_bytes_max: 4 * 1024 * 1024,
            header_time: Span(Duration::from_secs(10)),
            request_time: Span(Duration::from_secs(30)),
            disk_free_min: 64 * 1024 * 1024,
            count_every: Span(Duration::from_secs(30)),
            audit_dir: None,
            audit_bytes_max: 16 * 1024 * 1024,
            token: None,
        }
    }
}

impl AdminOptions {
    /// The configured token, if there is one.
    pub fn configured_token(&self) -> Result<Option<Token>, Failure> {
        match (&self.token, &self.token_file) {
            (Some(token), _) => Ok(Some(token.clone())),
            (None, Some(file)) => Token::read(file).map(Some),
            (None, None) => Ok(None),
        }
    }
}

/// Where the admin listener listens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum AdminListen {
    /// At this address.
    At(SocketAddr),
    /// The listener is off.
    Off,
}

impl Default for AdminListen {
    fn default() -> Self {
        Self::At(SocketAddr::from((Ipv4Addr::LOCALHOST, 8081)))
    }
}

impl FromStr for AdminListen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self::Off);
        }
        text.parse()
            .map(Self::At)
            .map_err(|_| "an address with a port, such as 127.0.0.1:8081, or off".to_owned())
    }
}

impl TryFrom<String> for AdminListen {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for AdminListen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(address) => address.fmt(f),
            Self::Off => f.write_str("off"),
        }
    }
}

impl From<AdminListen> for String {
    fn from(listen: AdminListen) -> Self {
        listen.to_string()
    }
}
