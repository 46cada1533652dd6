//! [`Config`]: the configuration of `hapax serve`, from flags, the environment, a file and defaults, in this order.
//!
//! | file | contents |
//! |---|---|
//! | `config/options.rs` | all options with their names, types and defaults |
//! | `config/schema.rs` | the JSON Schema and the list of options |
//! | `config/sources.rs`, `config/file.rs` | the sources of options |
//! | `config/service_links.rs` | variables set by Kubernetes, which are not options |
//! | `config/bounds.rs` | the validation of single values |
//! | `config/check.rs` | warnings, and the effective configuration as a document |
//!
//! Loading a configuration opens no store and no socket.

mod bounds;
mod check;
mod file;
mod options;
mod schema;
mod service_links;
mod sources;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hapax::Hapax;
use hapax::http::{HttpPolicy, IdempotencyLayer, PathPattern, Principal, Settings, unreachable_route};
use hapax_admin::{AdminOptions, Token};
use http::{HeaderName, Uri};
use serde::Deserialize;
use toml::{Table, Value};

pub(crate) use self::options::LimitOptions;
pub(crate) use self::options::StoreOptions;
use self::options::TlsSection;
use self::options::{FileOptions, RouteOptions};
use self::schema::ROUTE;
use self::sources::{Entry, Location};
use crate::failure::{Code, Failure};
use crate::proxy::{Tls, Transport, UpstreamOptions};
use crate::stores::StoreUrl;
use crate::telemetry::LogOptions;
use crate::trace::TraceOptions;

#[cfg(any(feature = "dynamodb", feature = "postgres", feature = "redis"))]
pub(crate) use self::check::is_remote;
pub(crate) use self::check::without_query;
pub(crate) use self::schema::{OptionInfo, known, schema};
pub(crate) use self::sources::Flags;

/// The configuration of `hapax serve`.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// The file that was read, if one was.
    pub(crate) file: Option<PathBuf>,
    pub(crate) listen: SocketAddr,
    /// The upstreams. None if no source sets them: only `serve` needs them.
    pub(crate) upstream: Vec<Uri>,
    pub(crate) store: StoreUrl,
    pub(crate) store_options: StoreOptions,
    pub(crate) limits: LimitOptions,
    /// In order, the policy of all other paths last.
    pub(crate) routes: Vec<Route>,
    pub(crate) admin: AdminOptions,
    pub(crate) transport: Transport,
    pub(crate) tls: Option<Tls>,
    pub(crate) upstream_options: UpstreamOptions,
    pub(crate) log: LogOptions,
    pub(crate) trace: TraceOptions,
    /// How long a graceful shutdown may take.
    pub(crate) drain: Duration,
}

/// The default directory of the audit log for stores without a directory.
const AUDIT_DIR: &str = "./hapax-audit";

/// The policy and URLs of a route.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    /// The paths; none for all that no other route matches.
    pub(crate) path: Option<PathPattern>,
    pub(crate) policy: HttpPolicy,
    /// The URL that resolves uncertain operations.
    pub(crate) reconcile: Option<Uri>,
    /// The URL that authorises callers.
    pub(crate) authorise: Option<Uri>,
    /// The header of its response that names the caller.
    pub(crate) authorise_principal: Option<HeaderName>,
}

impl Config {
    /// Reads and validates all sources.
    pub(crate) fn load(
        flags: &Flags,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, Failure> {
        Self::read(flags, variables, None)
    }

    /// Reads all sources again. Routes are validated against the store in use, which stays until a restart. A missing or
    /// empty file is refused: it is more likely being rewritten than meant to remove all routes.
    pub(crate) fn reload(
        &self,
        flags: &Flags,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, Failure> {
        Self::read(flags, variables, Some(self))
    }

    fn read(
        flags: &Flags,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        in_force: Option<&Self>,
    ) -> Result<Self, Failure> {
        let file = file::chosen(flags.file.as_deref());
        let (mut entries, routes) = match &file {
            Some(path) => file::read(path).map(|found| (found.entries, found.routes))?,
            None => (Vec::new(), Vec::new()),
        };
        let file_in_force = in_force.and_then(|config| config.file.as_deref());
        if let Some(path) = file_in_force.filter(|_| entries.is_empty() && routes.is_empty()) {
            let how = if file.is_some() { "is empty" } else { "no longer exists" };
            return Err(Failure::new(Code::ConfigInvalid, format!("{} {how}", path.display()))
                .hint("write the whole file and send SIGHUP again; to run without a file, restart"));
        }
        let found = sources::variables(variables)?;
        // Standard variables of all programs have lower precedence than everything else.
        entries.splice(0..0, found.standard);
        entries.extend(found.own);
        entries.extend(flags.entries());
        Entries { entries, routes }.config(file, in_force.map(|config| &config.store))
    }

    /// Adds the token of the admin listener from the environment, unless a flag names its file. The token is not an option
    /// of the file, which others may be able to read.
    pub(crate) fn with_token(mut self, flags: &Flags, variable: Option<OsString>) -> Result<Self, Failure> {
        let token = variable.filter(|_| !flags.sets("admin", "token_file"));
        self.admin.token = token.map(|token| Token::from_variable(&token)).transpose()?;
        Ok(self)
    }

    /// The layer of all routes, each with the policy that `policy_of` derives from it.
    pub(crate) fn layer(&self, hapax: &Hapax, policy_of: impl Fn(&Route) -> HttpPolicy) -> IdempotencyLayer {
        let layer = IdempotencyLayer::new(hapax).body_budget(self.limits.body_bytes_in_all_max);
        self.routes.iter().fold(layer, |layer, route| match &route.path {
            Some(path) => layer.route(path.clone(), policy_of(route)),
            None => layer.policy(policy_of(route)),
        })
    }

    /// The directory of the audit log; none for a store in memory, whose records are lost at the end of the process.
    pub(crate) fn audit_dir(&self) -> Option<&Path> {
        match (&self.admin.audit_dir, &self.store) {
            (Some(chosen), _) => Some(chosen),
            (None, StoreUrl::Memory) => None,
            (None, store) => Some(store.directory().unwrap_or(Path::new(AUDIT_DIR))),
        }
    }
}

/// The entries of all sources, in ascending precedence.
struct Entries {
    entries: Vec<Entry>,
    routes: Vec<Location>,
}

impl Entries {
    fn config(&self, file: Option<PathBuf>, in_force: Option<&StoreUrl>) -> Result<Config, Failure> {
        self.entries.iter().try_for_each(check_type)?;
        let mut top = Table::new();
        for entry in self.entries.iter().filter(|entry| entry.option.section != ROUTE) {
            insert(&mut top, entry);
        }
        let options: FileOptions = self.typed(top.clone(), None)?;
        if let Some(bounds::InvalidValue { section, option, why }) = bounds::first_invalid(&options) {
            return Err(self.invalid(section, option, why));
        }
        let defaults = top.get("defaults").and_then(Value::as_table).cloned().unwrap_or_default();
        let listen = options.listen.parse().map_err(|_| {
            let why =
                format!("{:?} is not an address; write IP:PORT, such as 127.0.0.1:8080", options.listen);
            self.invalid("", "listen", why)
        })?;
        options.log.filter().map_err(|why| self.invalid("log", "level", why))?;
        let urls = options.upstream.as_ref().map_or(&[][..], |upstream| upstream.urls());
        let upstream =
            urls.iter().map(|url| service_url(url).map_err(|why| self.invalid("", "upstream", why)));
        let store = StoreUrl::parse(&options.store.url)?.with_fast_tier(options.store.fast.as_deref())?;
        Ok(Config {
            file,
            listen,
            upstream: upstream.collect::<Result<_, _>>()?,
            routes: self.policies(&defaults, in_force.unwrap_or(&store))?,
            store,
            store_options: options.store,
            limits: options.limits,
            admin: options.admin,
            transport: options.transport,
            tls: self.tls(options.tls)?,
            upstream_options: options.upstream_options,
            log: options.log,
            trace: options.trace,
            drain: options.drain.limit.0,
        })
    }

    /// The policies of all routes, and of all other paths.
    fn policies(&self, defaults: &Table, store: &StoreUrl) -> Result<Vec<Route>, Failure> {
        let mut routes = Vec::with_capacity(self.routes.len() + 1);
        for (index, location) in self.routes.iter().enumerate() {
            let mut table = defaults.clone();
            for entry in self.entries.iter().filter(|entry| entry.option.index == Some(index)) {
                table.insert(entry.option.name.to_owned(), entry.value.clone());
            }
            let options: RouteOptions = self.typed(table, Some(index))?;
            let path = pattern(&options).map_err(|(option, why)| match option {
                Some(option) => self.invalid_in_route(index, option, why),
                None => location.invalid(why),
            })?;
            let url = |option, text: &Option<String>| {
                let url = text.as_deref().map(http_url).transpose();
                url.map_err(|why| self.invalid_in_route(index, option, why))
            };
            let authorise_principal = self.authorise_principal(index, &options)?;
            let policy = self.policy(options.settings, Some(index), store)?;
            routes.push(Route {
                path: Some(path),
                policy: match authorise_principal {
                    Some(_) => policy.principal(Principal::Authorised),
                    None => policy,
                },
                reconcile: url("reconcile", &options.reconcile)?,
                authorise: url("authorise", &options.authorise)?,
                authorise_principal,
            });
        }
        let named = routes.iter().filter_map(|route: &Route| Some((route.path.as_ref()?, &route.policy)));
        if let Some(error) = unreachable_route(named) {
            let hint = "move it before the route that shadows it, or remove it";
            return Err(self.routes[error.index()].invalid(error).hint(hint));
        }
        let rest: RouteOptions = self.typed(defaults.clone(), None)?;
        let policy = self.policy(rest.settings, None, store)?;
        routes.push(Route {
            path: None,
            policy,
            reconcile: None,
            authorise: None,
            authorise_principal: None,
        });
        Ok(routes)
    }

    /// The header in which a route's `authorise` URL names callers. It replaces an inherited `principal`.
    fn authorise_principal(
        &self,
        index: usize,
        options: &RouteOptions,
    ) -> Result<Option<HeaderName>, Failure> {
        const OPTION: &str = "authorise_principal";
        let Some(name) = &options.authorise_principal else { return Ok(None) };
        let invalid = |why: &str| self.invalid_in_route(index, OPTION, format_args!("`{OPTION}`: {why}"));
        if options.authorise.is_none() {
            return Err(invalid("it has no effect without `authorise`; set that too, or remove this"));
        }
        if self.location(ROUTE, Some(index), "principal").is_some() {
            return Err(invalid("the route sets `principal`, too; remove one of them"));
        }
        let why = "not a header name; use letters, digits and `-`";
        name.parse().map(Some).map_err(|_| invalid(why))
    }

    /// The policy of one route. The default of `outcome_bytes_max` is lowered to the limit of the store; a configured value
    /// above the limit is an error.
    fn policy(
        &self,
        settings: Settings,
        route: Option<usize>,
        store: &StoreUrl,
    ) -> Result<HttpPolicy, Failure> {
        const OPTION: &str = "outcome_bytes_max";
        let limit = store.outcome_bytes_max();
        if let Some(kept) = settings.outcome_bytes_max.filter(|kept| *kept > limit) {
            let why = format!("`{OPTION}`: {kept} is more than the limit of {store}, which is {limit}");
            return Err(self.invalid_setting(route, OPTION, why).hint(store.outcome_hint()));
        }
        let policy = settings.policy().map_err(|error| self.invalid_setting(route, error.option, &error))?;
        let kept = policy.settings().outcome_bytes_max.unwrap_or(limit);
        Ok(policy.outcome_bytes_max(kept.min(limit)))
    }

    fn tls(&self, tls: TlsSection) -> Result<Option<Tls>, Failure> {
        match (tls.certificate, tls.key) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => Ok(Some(Tls { certificate, key })),
            (Some(_), None) => Err(self.invalid("tls", "certificate", "it needs `key` in the same section")),
            (None, Some(_)) => Err(self.invalid("tls", "key", "it needs `certificate` in the same section")),
        }
    }

    /// Each value has been validated alone, so this only fails if two of them contradict each other.
    fn typed<T: for<'de> Deserialize<'de>>(&self, table: Table, route: Option<usize>) -> Result<T, Failure> {
        T::deserialize(Value::Table(table)).map_err(|error| {
            let location = route
                .and_then(|index| self.routes.get(index))
                .or(self.entries.first().map(|entry| &entry.location));
            match location {
                Some(location) => location.invalid(error.message()),
                None => Failure::new(Code::ConfigInvalid, error.message()),
            }
        })
    }

    /// An error about a setting of a route, which it may inherit.
    fn invalid_setting(&self, route: Option<usize>, option: &str, why: impl std::fmt::Display) -> Failure {
        let of_route = route.filter(|index| self.location(ROUTE, Some(*index), option).is_some());
        match (of_route, route) {
            (Some(index), _) => self.invalid_in_route(index, option, why),
            (None, Some(index)) if self.location("defaults", None, option).is_none() => {
                self.routes[index].invalid(why)
            }
            _ => self.invalid("defaults", option, why),
        }
    }

    fn invalid(&self, section: &str, option: &str, why: impl std::fmt::Display) -> Failure {
        match self.location(section, None, option) {
            Some(location) => location.invalid(why),
            None => Failure::new(Code::ConfigInvalid, format!("`{option}`: {why}")),
        }
    }

    fn invalid_in_route(&self, index: usize, option: &str, why: impl std::fmt::Display) -> Failure {
        self.location(ROUTE, Some(index), option).unwrap_or(&self.routes[index]).invalid(why)
    }

    /// Where the effective value of an option is set.
    fn location(&self, section: &str, index: Option<usize>, name: &str) -> Option<&Location> {
        let is_same = |entry: &&Entry| {
            (entry.option.section, entry.option.index, entry.option.name) == (section, index, name)
        };
        self.entries.iter().rfind(is_same).map(|entry| &entry.location)
    }
}

/// Checks the type of the value alone, so that an error has its location.
fn check_type(entry: &Entry) -> Result<(), Failure> {
    let mut table = Table::new();
    insert(&mut table, entry);
    match FileOptions::deserialize(Value::Table(table)) {
        Ok(_) => Ok(()),
        Err(error) => {
            Err(entry.location.invalid(format_args!("`{}`: {}", entry.option.name, error.message())))
        }
    }
}

fn insert(top: &mut Table, entry: &Entry) {
    let (section, name, value) = (entry.option.section, entry.option.name.to_owned(), entry.value.clone());
    match section {
        "" => {
            top.insert(name, value);
        }
        ROUTE => {
            top.insert(ROUTE.to_owned(), Value::Array(vec![Value::Table(Table::from_iter([(name, value)]))]));
        }
        _ => {
            let table = top.entry(section).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(table) = table {
                table.insert(name, value);
            }
        }
    }
}

/// The path pattern of a route. An error names the option, if one is at fault.
fn pattern(options: &RouteOptions) -> Result<PathPattern, (Option<&'static str>, String)> {
    let message = |option| {
        move |error: hapax::http::PathPatternError| {
            let cause =
                std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            (Some(option), format!("{error}{cause}"))
        }
    };
    match (&options.path, &options.path_regex) {
        (Some(path), None) => path.parse().map_err(message("path")),
        (None, Some(regex)) => PathPattern::regex(regex).map_err(message("path_regex")),
        (Some(_), Some(_)) => Err((Some("path_regex"), "set `path` or `path_regex`, not both".to_owned())),
        (None, None) => {
            Err((None, "the route has no paths; add `path`, such as path = \"/v1/orders/**\"".to_owned()))
        }
    }
}

/// Parses the URL of a service, without a path. Errors do not repeat it: it may contain a password.
fn service_url(url: &str) -> Result<Uri, String> {
    let uri = http_url(url)?;
    let has_no_path =
        matches!(uri.path_and_query().map(http::uri::PathAndQuery::as_str), None | Some("/" | ""));
    if has_no_path {
        Ok(uri)
    } else {
        Err("the URL of a service must have no path: http://HOST:PORT".to_owned())
    }
}

/// Parses an HTTP URL. Errors do not repeat it.
pub(crate) fn http_url(url: &str) -> Result<Uri, String> {
    let uri: Uri = url.parse().map_err(|_| "not a URL; write http://HOST:PORT/PATH".to_owned())?;
    match (uri.scheme_str(), uri.authority()) {
        (Some("http" | "https"), Some(authority)) if !authority.as_str().contains('@') => Ok(uri),
        (Some("http" | "https"), Some(_)) => Err("a URL must not contain a user or a password".to_owned()),
        _ => Err("a URL starts with http:// or https:// and has a host".to_owned()),
    }
}

#[cfg(test)]
mod tests;
