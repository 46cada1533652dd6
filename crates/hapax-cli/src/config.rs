//! [`Config`]: what `hapax serve` runs with, made of flags, the environment, a file and defaults, in this order.
//!
//! | file | what it owns |
//! |---|---|
//! | `config/shape.rs` | every option with its name, type and default |
//! | `config/schema.rs` | the same as a JSON Schema and as a list |
//! | `config/sources.rs`, `config/file.rs` | where options are said |
//! | `config/service_links.rs` | variables that Kubernetes sets, which are no options |
//! | `config/bounds.rs` | which values make no sense |
//! | `config/check.rs` | what should worry somebody |
//!
//! It opens no store and no socket.

mod bounds;
mod check;
mod file;
mod schema;
mod service_links;
mod shape;
mod sources;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hapax::Hapax;
use hapax::http::{HttpPolicy, IdempotencyLayer, PathPattern, Principal, Settings, unreachable_route};
use http::{HeaderName, Uri};
use serde::Deserialize;
use toml::{Table, Value};

use self::schema::ROUTE;
pub(crate) use self::shape::LimitOptions;
pub(crate) use self::shape::StoreOptions;
use self::shape::TlsSection;
use self::shape::{RouteShape, Shape};
use self::sources::{Place, Said};
use crate::admin::{AdminOptions, Token};
use crate::failure::{Code, Failure};
use crate::proxy::{Tls, Transport, UpstreamOptions};
use crate::stores::StoreUrl;
use crate::telemetry::LogOptions;
use crate::trace::TraceOptions;

#[cfg(any(feature = "dynamodb", feature = "postgres", feature = "redis"))]
pub(crate) use self::check::is_elsewhere;
pub(crate) use self::check::shown;
pub(crate) use self::schema::{Known, known, schema};
pub(crate) use self::sources::Flags;

/// What `hapax serve` runs with.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// The file that was read, if one was.
    pub(crate) file: Option<PathBuf>,
    pub(crate) listen: SocketAddr,
    /// Where requests are sent. None where nobody said so: only `serve` needs it.
    pub(crate) upstream: Vec<Uri>,
    pub(crate) store: StoreUrl,
    pub(crate) store_options: StoreOptions,
    pub(crate) limits: LimitOptions,
    /// In their order, the policy of the rest last.
    pub(crate) routes: Vec<Route>,
    pub(crate) admin: AdminOptions,
    pub(crate) transport: Transport,
    pub(crate) tls: Option<Tls>,
    pub(crate) upstream_options: UpstreamOptions,
    pub(crate) log: LogOptions,
    pub(crate) trace: TraceOptions,
    /// How long a drain may take.
    pub(crate) drain: Duration,
}

/// Where the audit log is when nobody says so and the store has no directory.
const AUDIT_DIR: &str = "./hapax-audit";

/// What holds on some paths.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    /// The paths; none for all that no other route is for.
    pub(crate) path: Option<PathPattern>,
    pub(crate) policy: HttpPolicy,
    /// Whom to ask whether an uncertain operation happened.
    pub(crate) reconcile: Option<Uri>,
    /// Whom to ask whether the caller may do this.
    pub(crate) authorise: Option<Uri>,
    /// The header of that answer which names the caller.
    pub(crate) authorise_principal: Option<HeaderName>,
}

impl Config {
    /// Reads everything that was said, and checks it.
    pub(crate) fn load(
        flags: &Flags,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, Failure> {
        Self::read(flags, variables, None)
    }

    /// Reads everything again. The routes are checked with the store in force, which stays until a restart. A file that
    /// is gone or says nothing is refused: it is one that is being written, not one that takes all routes away.
    pub(crate) fn load_again(
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
        let (mut said, routes) = match &file {
            Some(path) => file::read(path).map(|found| (found.said, found.routes))?,
            None => (Vec::new(), Vec::new()),
        };
        let file_in_force = in_force.and_then(|config| config.file.as_deref());
        if let Some(path) = file_in_force.filter(|_| said.is_empty() && routes.is_empty()) {
            let how = if file.is_some() { "is empty" } else { "is not there any more" };
            return Err(Failure::new(Code::ConfigInvalid, format!("{} {how}", path.display()))
                .hint("write the file as a whole and send SIGHUP again; to run without one, start again"));
        }
        let found = sources::variables(variables)?;
        // What is said to all programs gives way to what is said to this one.
        said.splice(0..0, found.to_all);
        said.extend(found.to_us);
        said.extend(flags.said());
        Words { said, routes }.config(file, in_force.map(|config| &config.store))
    }

    /// The same with the token of operators that the environment holds, unless a flag names its file. A file that
    /// everybody may read is no place for it, so it is no option.
    pub(crate) fn with_token(mut self, flags: &Flags, variable: Option<OsString>) -> Result<Self, Failure> {
        let counts = variable.filter(|_| !flags.says("admin", "token_file"));
        self.admin.token = counts.map(|token| Token::of_variable(&token)).transpose()?;
        Ok(self)
    }

    /// The layer of all routes, each with the policy that `policy_of` makes of it.
    pub(crate) fn layer(&self, hapax: &Hapax, policy_of: impl Fn(&Route) -> HttpPolicy) -> IdempotencyLayer {
        let layer = IdempotencyLayer::new(hapax).body_budget(self.limits.body_bytes_in_all_max);
        self.routes.iter().fold(layer, |layer, route| match &route.path {
            Some(path) => layer.route(path.clone(), policy_of(route)),
            None => layer.policy(policy_of(route)),
        })
    }

    /// Where the audit log is kept; none for a store in memory, whose log would outlive what it is about.
    pub(crate) fn audit_dir(&self) -> Option<&Path> {
        match (&self.admin.audit_dir, &self.store) {
            (Some(chosen), _) => Some(chosen),
            (None, StoreUrl::Memory) => None,
            (None, store) => Some(store.directory().unwrap_or(Path::new(AUDIT_DIR))),
        }
    }
}

/// Everything that was said, the least important first.
struct Words {
    said: Vec<Said>,
    routes: Vec<Place>,
}

impl Words {
    fn config(&self, file: Option<PathBuf>, in_force: Option<&StoreUrl>) -> Result<Config, Failure> {
        self.said.iter().try_for_each(alone)?;
        let mut top = Table::new();
        for said in self.said.iter().filter(|said| said.target.section != ROUTE) {
            put(&mut top, said);
        }
        let shape: Shape = self.typed(top.clone(), None)?;
        if let Some(bounds::Wrong { section, option, why }) = bounds::wrong(&shape) {
            return Err(self.wrong(section, option, why));
        }
        let defaults = top.get("defaults").and_then(Value::as_table).cloned().unwrap_or_default();
        let listen = shape.listen.parse().map_err(|_| {
            let why = format!("{:?} is no address; write IP:PORT, such as 127.0.0.1:8080", shape.listen);
            self.wrong("", "listen", why)
        })?;
        shape.log.filter().map_err(|why| self.wrong("log", "level", why))?;
        let urls = shape.upstream.as_ref().map_or(&[][..], |upstream| upstream.urls());
        let upstream = urls.iter().map(|url| origin(url).map_err(|why| self.wrong("", "upstream", why)));
        let store = StoreUrl::parse(&shape.store.url)?.behind(shape.store.fast.as_deref())?;
        Ok(Config {
            file,
            listen,
            upstream: upstream.collect::<Result<_, _>>()?,
            routes: self.policies(&defaults, in_force.unwrap_or(&store))?,
            store,
            store_options: shape.store,
            limits: shape.limits,
            admin: shape.admin,
            transport: shape.transport,
            tls: self.tls(shape.tls)?,
            upstream_options: shape.upstream_options,
            log: shape.log,
            trace: shape.trace,
            drain: shape.drain.limit.0,
        })
    }

    /// The policy of every route, and of the rest.
    fn policies(&self, defaults: &Table, store: &StoreUrl) -> Result<Vec<Route>, Failure> {
        let mut routes = Vec::with_capacity(self.routes.len() + 1);
        for (index, place) in self.routes.iter().enumerate() {
            let mut table = defaults.clone();
            for said in self.said.iter().filter(|said| said.target.index == Some(index)) {
                table.insert(said.target.name.to_owned(), said.value.clone());
            }
            let shape: RouteShape = self.typed(table, Some(index))?;
            let path = pattern(&shape).map_err(|(option, why)| match option {
                Some(option) => self.wrong_in_route(index, option, why),
                None => place.wrong(why),
            })?;
            let url = |option, text: &Option<String>| {
                let url = text.as_deref().map(asked).transpose();
                url.map_err(|why| self.wrong_in_route(index, option, why))
            };
            let authorise_principal = self.authorise_principal(index, &shape)?;
            let policy = self.policy(shape.settings, Some(index), store)?;
            routes.push(Route {
                path: Some(path),
                policy: match authorise_principal {
                    Some(_) => policy.principal(Principal::Authorised),
                    None => policy,
                },
                reconcile: url("reconcile", &shape.reconcile)?,
                authorise: url("authorise", &shape.authorise)?,
                authorise_principal,
            });
        }
        let named = routes.iter().filter_map(|route: &Route| Some((route.path.as_ref()?, &route.policy)));
        if let Some(mistake) = unreachable_route(named) {
            let way_out = "put it before the route that takes its requests, or leave it out";
            return Err(self.routes[mistake.index()].wrong(mistake).hint(way_out));
        }
        let rest: RouteShape = self.typed(defaults.clone(), None)?;
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

    /// The header in which a route's `authorise` URL names callers. It takes the place of an inherited `principal`.
    fn authorise_principal(&self, index: usize, shape: &RouteShape) -> Result<Option<HeaderName>, Failure> {
        const OPTION: &str = "authorise_principal";
        let Some(name) = &shape.authorise_principal else { return Ok(None) };
        let wrong = |why: &str| self.wrong_in_route(index, OPTION, format_args!("`{OPTION}`: {why}"));
        if shape.authorise.is_none() {
            return Err(wrong("it changes nothing without `authorise`; say that too, or leave this out"));
        }
        if self.place(ROUTE, Some(index), "principal").is_some() {
            return Err(wrong("the route says `principal`, too; leave one of them out"));
        }
        let why = "it is no header's name; write letters, digits and `-`";
        name.parse().map(Some).map_err(|_| wrong(why))
    }

    /// The policy of one route. Where nobody says how large an answer is kept, it is no larger than the store takes; what
    /// somebody says and the store does not take is a mistake.
    fn policy(
        &self,
        settings: Settings,
        route: Option<usize>,
        store: &StoreUrl,
    ) -> Result<HttpPolicy, Failure> {
        const OPTION: &str = "outcome_bytes_max";
        let taken = store.outcome_bytes_max();
        if let Some(kept) = settings.outcome_bytes_max.filter(|kept| *kept > taken) {
            let why = format!("`{OPTION}`: {kept} is more than {store} takes, which is {taken}");
            return Err(self.wrong_setting(route, OPTION, why).hint(store.outcome_hint()));
        }
        let policy = settings.policy().map_err(|error| self.wrong_setting(route, error.option, &error))?;
        let kept = policy.settings().outcome_bytes_max.unwrap_or(taken);
        Ok(policy.outcome_bytes_max(kept.min(taken)))
    }

    fn tls(&self, tls: TlsSection) -> Result<Option<Tls>, Failure> {
        match (tls.certificate, tls.key) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => Ok(Some(Tls { certificate, key })),
            (Some(_), None) => {
                Err(self.wrong("tls", "certificate", "it needs its `key` in the same section"))
            }
            (None, Some(_)) => {
                Err(self.wrong("tls", "key", "it needs its `certificate` in the same section"))
            }
        }
    }

    /// Each value was read alone before, so this fails only where two do not go together.
    fn typed<T: for<'de> Deserialize<'de>>(&self, table: Table, route: Option<usize>) -> Result<T, Failure> {
        T::deserialize(Value::Table(table)).map_err(|error| {
            let place =
                route.and_then(|index| self.routes.get(index)).or(self.said.first().map(|said| &said.place));
            match place {
                Some(place) => place.wrong(error.message()),
                None => Failure::new(Code::ConfigInvalid, error.message()),
            }
        })
    }

    /// What a route's settings, or those it inherits, cannot mean.
    fn wrong_setting(&self, route: Option<usize>, option: &str, why: impl std::fmt::Display) -> Failure {
        let of_route = route.filter(|index| self.place(ROUTE, Some(*index), option).is_some());
        match (of_route, route) {
            (Some(index), _) => self.wrong_in_route(index, option, why),
            (None, Some(index)) if self.place("defaults", None, option).is_none() => {
                self.routes[index].wrong(why)
            }
            _ => self.wrong("defaults", option, why),
        }
    }

    fn wrong(&self, section: &str, option: &str, why: impl std::fmt::Display) -> Failure {
        match self.place(section, None, option) {
            Some(place) => place.wrong(why),
            None => Failure::new(Code::ConfigInvalid, format!("`{option}`: {why}")),
        }
    }

    fn wrong_in_route(&self, index: usize, option: &str, why: impl std::fmt::Display) -> Failure {
        self.place(ROUTE, Some(index), option).unwrap_or(&self.routes[index]).wrong(why)
    }

    /// Where the word that counts was said.
    fn place(&self, section: &str, index: Option<usize>, name: &str) -> Option<&Place> {
        let is_it = |said: &&Said| {
            (said.target.section, said.target.index, said.target.name) == (section, index, name)
        };
        self.said.iter().rfind(is_it).map(|said| &said.place)
    }
}

/// Whether the value is of the right type, so that an error can be told with its place.
fn alone(said: &Said) -> Result<(), Failure> {
    let mut table = Table::new();
    put(&mut table, said);
    match Shape::deserialize(Value::Table(table)) {
        Ok(_) => Ok(()),
        Err(error) => Err(said.place.wrong(format_args!("`{}`: {}", said.target.name, error.message()))),
    }
}

fn put(top: &mut Table, said: &Said) {
    let (section, name, value) = (said.target.section, said.target.name.to_owned(), said.value.clone());
    match section {
        "" => {
            top.insert(name, value);
        }
        ROUTE => {
            top.insert(ROUTE.to_owned(), Value::Array(vec![Value::Table(Table::from_iter([(name, value)]))]));
        }
        _ => {
            let place = top.entry(section).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(table) = place {
                table.insert(name, value);
            }
        }
    }
}

/// The paths of a route. What is wrong, with the option that says so where there is one.
fn pattern(shape: &RouteShape) -> Result<PathPattern, (Option<&'static str>, String)> {
    let told = |option| {
        move |error: hapax::http::PathPatternError| {
            let cause =
                std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            (Some(option), format!("{error}{cause}"))
        }
    };
    match (&shape.path, &shape.path_regex) {
        (Some(path), None) => path.parse().map_err(told("path")),
        (None, Some(regex)) => PathPattern::regex(regex).map_err(told("path_regex")),
        (Some(_), Some(_)) => Err((Some("path_regex"), "say `path` or `path_regex`, not both".to_owned())),
        (None, None) => {
            Err((None, "the route says no paths; add `path`, such as path = \"/v1/orders/**\"".to_owned()))
        }
    }
}

/// The URL of a service as a whole. What it holds is not repeated: it may be a password.
fn origin(url: &str) -> Result<Uri, String> {
    let uri = asked(url)?;
    let is_whole = matches!(uri.path_and_query().map(http::uri::PathAndQuery::as_str), None | Some("/" | ""));
    if is_whole { Ok(uri) } else { Err("a service is named without a path: http://HOST:PORT".to_owned()) }
}

/// A URL that requests can be sent to.
pub(crate) fn asked(url: &str) -> Result<Uri, String> {
    let uri: Uri = url.parse().map_err(|_| "that is no URL; write http://HOST:PORT/PATH".to_owned())?;
    match (uri.scheme_str(), uri.authority()) {
        (Some("http" | "https"), Some(authority)) if !authority.as_str().contains('@') => Ok(uri),
        (Some("http" | "https"), Some(_)) => Err("a URL with a user or a password is not taken".to_owned()),
        _ => Err("a URL begins with http:// or https:// and names a host".to_owned()),
    }
}

#[cfg(test)]
mod tests;
