//! What a file may say, by name and type. The schema, the names of environment variables and the reference page are
//! made from this one definition. What the values mean together is for [`Config`](super::Config) to say.

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

use hapax::http::Settings;
use hapax::http::settings::Span;
use hapax::http::settings::size::{self, Size};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::admin::AdminOptions;
use crate::proxy::{Transport, UpstreamOptions};
use crate::stores::STORE_DEFAULT;
use crate::telemetry::LogOptions;
use crate::trace::TraceOptions;

/// What `hapax serve` runs with.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "hapax.toml")]
pub(crate) struct Shape {
    /// The address that callers connect to.
    pub(crate) listen: String,
    /// The service behind: one URL, or a list of URLs of equal ones.
    pub(crate) upstream: Option<Upstream>,
    /// Where records are kept.
    pub(crate) store: StoreOptions,
    /// What holds on every route that does not say otherwise, and for paths that no route names.
    pub(crate) defaults: Settings,
    /// What holds on some paths. Of several that match a request, the first counts.
    pub(crate) route: Vec<RouteShape>,
    /// How much is held in memory at a time.
    pub(crate) limits: LimitOptions,
    /// The listener for operators.
    pub(crate) admin: AdminOptions,
    /// Deadlines and caps of the listener for callers.
    pub(crate) transport: Transport,
    /// Certificate and key of the listener for callers.
    pub(crate) tls: TlsSection,
    /// How the service behind is talked to.
    pub(crate) upstream_options: UpstreamOptions,
    /// What is logged, and how.
    pub(crate) log: LogOptions,
    /// What is traced, and where to.
    pub(crate) trace: TraceOptions,
    /// How the process ends.
    pub(crate) drain: DrainOptions,
}

impl Default for Shape {
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
    /// `redis://HOST?prefix=NAME:` in front of a database: it knows finished records and spares the database their replays.
    pub(crate) fast: Option<String>,
    /// How often records whose time is over are removed; `off` leaves that to `hapax sweep`.
    pub(crate) sweep: Every,
    /// How long one call of the store may take before its answer counts as lost.
    pub(crate) timeout: Span,
    /// How many bytes of finished records are answered from memory: until their time is over where the store has one owner, and for a minute at most where other processes may delete records. 0: none.
    #[serde(deserialize_with = "size::deserialize")]
    #[schemars(with = "Size")]
    pub(crate) cache_bytes: u64,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            url: STORE_DEFAULT.to_owned(),
            fast: None,
            sweep: Every(Some(Span(Duration::from_secs(3600)))),
            timeout: Span(Duration::from_secs(5)),
            cache_bytes: 32 << 20,
        }
    }
}

/// A length of time, or `off`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Every(pub(crate) Option<Span>);

impl TryFrom<String> for Every {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "off" => Ok(Self(None)),
            span => match span.parse::<Span>() {
                Ok(span) if span.0.is_zero() => Err("write off for never".to_owned()),
                Ok(span) => Ok(Self(Some(span))),
                Err(error) => Err(format!("{error}; or off for never")),
            },
        }
    }
}

impl From<Every> for String {
    fn from(every: Every) -> Self {
        every.0.map_or_else(|| "off".to_owned(), String::from)
    }
}

impl JsonSchema for Every {
    fn schema_name() -> Cow<'static, str> {
        "Every".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [generator.subschema_for::<Span>(), { "const": "off" }] })
    }
}

/// How much is held in memory at a time.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LimitOptions {
    /// How many bytes of request bodies are held at a time, by all requests together.
    #[serde(deserialize_with = "size::deserialize")]
    #[schemars(with = "Size")]
    pub(crate) body_bytes_in_all_max: usize,
    /// How many duplicates may wait for one key.
    pub(crate) waiters_per_key_max: usize,
    /// How many duplicates may wait in all.
    pub(crate) waiters_in_all_max: usize,
    /// How long a `reconcile` or `authorise` URL may take to answer.
    pub(crate) ask_timeout: Span,
    /// How many bytes such an answer may have.
    #[serde(deserialize_with = "size::deserialize")]
    #[schemars(with = "Size")]
    pub(crate) ask_bytes_max: usize,
    /// How many unused connections are kept to the host of such a URL.
    pub(crate) ask_idle_max: usize,
    /// How long an unused one is kept; choose less than that host does.
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

/// How the process ends.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DrainOptions {
    /// How long requests that have begun may take to end after SIGTERM.
    pub(crate) limit: Span,
}

impl Default for DrainOptions {
    fn default() -> Self {
        Self { limit: Span(Duration::from_secs(30)) }
    }
}

/// What holds on some paths: everything that `[defaults]` may say, and these.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
// What serde cannot refuse beside a flattened member, the reader of the file does.
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct RouteShape {
    /// The paths: `/v1/orders`, `/v1/orders/{id}`, `/v1/orders/**`.
    pub(crate) path: Option<String>,
    /// The paths, by a regular expression for the whole path.
    pub(crate) path_regex: Option<String>,
    /// The URL that is asked "did this happen?" about an uncertain operation.
    pub(crate) reconcile: Option<String>,
    /// The URL that is asked whether the caller may do this, before anything is claimed or replayed.
    pub(crate) authorise: Option<String>,
    /// The header of its answer that names the caller, who is then the principal.
    pub(crate) authorise_principal: Option<String>,
    #[serde(flatten)]
    pub(crate) settings: Settings,
}

/// Certificate and key of the listener. Without both it speaks plain HTTP.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TlsSection {
    /// The certificate with its chain, in PEM.
    pub(crate) certificate: Option<PathBuf>,
    /// Its key, in PEM.
    pub(crate) key: Option<PathBuf>,
}
