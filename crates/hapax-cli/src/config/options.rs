//! The options by name and type. The schema, the names of environment variables and the reference page are derived from
//! this definition. Constraints between options are checked by [`Config`](super::Config).

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

use hapax::http::Settings;
use hapax::http::settings::Span;
use hapax::http::settings::size::{self, Size};
use hapax_admin::AdminOptions;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::proxy::{Transport, UpstreamOptions};
use crate::stores::STORE_DEFAULT;
use crate::telemetry::LogOptions;
use crate::trace::TraceOptions;

/// The configuration of `hapax serve`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "hapax.toml")]
pub(crate) struct FileOptions {
    /// The address that clients connect to.
    pub(crate) listen: String,
    /// The upstream service: one URL, or a list of URLs of equivalent ones.
    pub(crate) upstream: Option<Upstream>,
    /// Where records are kept.
    pub(crate) store: StoreOptions,
    /// The defaults of all routes, and the policy of paths that no route matches.
    pub(crate) defaults: Settings,
    /// The policy of some paths. Of several routes that match a request, the first one applies.
    pub(crate) route: Vec<RouteOptions>,
    /// Limits on memory and on calls to `reconcile` and `authorise` URLs.
    pub(crate) limits: LimitOptions,
    /// The admin listener.
    pub(crate) admin: AdminOptions,
    /// Timeouts and limits of the listener.
    pub(crate) transport: Transport,
    /// Certificate and private key of the listener.
    pub(crate) tls: TlsSection,
    /// How upstreams are reached.
    pub(crate) upstream_options: UpstreamOptions,
    /// Log level and format.
    pub(crate) log: LogOptions,
    /// The export of traces.
    pub(crate) trace: TraceOptions,
    /// Graceful shutdown.
    pub(crate) drain: DrainOptions,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8080".to_owned(),
            upstream: None,
            store: StoreOptions::default(),
            defaults: Settings::default(),
            route: Vec::new(),
            limits: LimitOptions::default(),
            admin: AdminOptions::default(),
            transport: Transport::default(),
            tls: TlsSection::default(),
            upstream_options: UpstreamOptions::default(),
            log: LogOptions::default(),
            trace: TraceOptions::default(),
            drain: DrainOptions::default(),
        }
    }
}

/// One URL or several.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(untagged, expecting = "expected a URL or a list of URLs")]
pub(crate) enum Upstream {
    One(String),
    Several(Vec<String>),
}

impl Upstream {
    pub(crate) fn urls(&self) -> &[String] {
        match self {
            Self::One(url) => std::slice::from_ref(url),
            Self::Several(urls) => urls,
        }
    }
}

/// Where records are kept.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StoreOptions {
    /// `file:DIR`, `memory:`, `postgres://HOST/DATABASE`, `redis://HOST` or `dynamodb://TABLE`.
    pub(crate) url: String,
    /// `redis://HOST?prefix=NAME:` in front of a database: it keeps finished records and spares the database their replays.
    pub(crate) fast: Option<String>,
    /// How often expired records are removed; `off` leaves that to `hapax sweep`.
    pub(crate) sweep: Interval,
    /// The timeout of a store call, after which its outcome is unknown.
    pub(crate) timeout: Span,
    /// How many bytes of finished records are cached in memory: until they expire if the store has one owner, and for a minute at most if other processes may delete records. 0: no cache.
    #[serde(deserialize_with = "size::deserialize")]
    #[schemars(with = "Size")]
    pub(crate) cache_bytes: u64,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            url: STORE_DEFAULT.to_owned(),
            fast: None,
            sweep: Interval(Some(Span(Duration::from_secs(3600)))),
            timeout: Span(Duration::from_secs(5)),
            cache_bytes: 32 << 20,
        }
    }
}

/// A duration, or `off`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Interval(pub(crate) Option<Span>);

impl TryFrom<String> for Interval {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "off" => Ok(Self(None)),
            span => match span.parse::<Span>() {
                Ok(span) if span.0.is_zero() => Err("write off to disable it".to_owned()),
                Ok(span) => Ok(Self(Some(span))),
                Err(error) => Err(format!("{error}; or off to disable it")),
            },
        }
    }
}

impl From<Interval> for String {
    fn from(every: Interval) -> Self {
        every.0.map_or_else(|| "off".to_owned(), String::from)
    }
}

impl JsonSchema for Interval {
    fn schema_name() -> Cow<'static, str> {
        "Interval".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [generator.subschema_for::<Span>(), { "const": "off" }] })
    }
}

/// Limits on memory and on calls to `reconcile` and `authorise` URLs.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LimitOptions {
    /// The most bytes of request bodies held in memory, by all requests together.
    #[serde(deserialize_with = "size::deserialize")]
    #[schemars(with = "Size")]
    pub(crate) body_bytes_in_all_max: usize,
    /// How many duplicates may wait for one key.
    pub(crate) waiters_per_key_max: usize,
    /// How many duplicates may wait for all keys together.
    pub(crate) waiters_in_all_max: usize,
    /// How long a `reconcile` or `authorise` URL may take to respond.
    pub(crate) ask_timeout: Span,
    /// The most bytes of such a response.
    #[serde(deserialize_with = "size::deserialize")]
    #[schemars(with = "Size")]
    pub(crate) ask_bytes_max: usize,
    /// The most idle connections kept to the host of such a URL.
    pub(crate) ask_idle_max: usize,
    /// How long an idle connection is kept; it must be shorter than the host's own timeout.
    pub(crate) ask_keep_alive: Span,
}

impl Default for LimitOptions {
    fn default() -> Self {
        Self {
            body_bytes_in_all_max: 256 << 20,
            waiters_per_key_max: 1000,
            waiters_in_all_max: 10_000,
            ask_timeout: Span(Duration::from_secs(5)),
            ask_bytes_max: 1 << 20,
            ask_idle_max: 32,
            ask_keep_alive: Span(Duration::from_secs(4)),
        }
    }
}

/// Graceful shutdown.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DrainOptions {
    /// How long requests in flight may take to end after SIGTERM.
    pub(crate) limit: Span,
}

impl Default for DrainOptions {
    fn default() -> Self {
        Self { limit: Span(Duration::from_secs(30)) }
    }
}

/// The policy of some paths: all options of `[defaults]`, and these.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
// Serde cannot refuse unknown fields beside a flattened one, so the reader of the file does.
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct RouteOptions {
    /// The path pattern: `/v1/orders`, `/v1/orders/{id}`, `/v1/orders/**`.
    pub(crate) path: Option<String>,
    /// A regular expression that matches whole paths.
    pub(crate) path_regex: Option<String>,
    /// The URL that is asked whether an uncertain operation happened.
    pub(crate) reconcile: Option<String>,
    /// The URL that is asked whether the caller is authorised, before anything is claimed or replayed.
    pub(crate) authorise: Option<String>,
    /// The header of its response that names the caller, who is then the principal.
    pub(crate) authorise_principal: Option<String>,
    #[serde(flatten)]
    pub(crate) settings: Settings,
}

/// Certificate and private key of the listener. Without both it serves plain HTTP.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TlsSection {
    /// The file with the certificate and its chain, in PEM.
    pub(crate) certificate: Option<PathBuf>,
    /// The file with its private key, in PEM.
    pub(crate) key: Option<PathBuf>,
}
