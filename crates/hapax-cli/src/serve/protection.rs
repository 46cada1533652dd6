//! The protection that a reload removes.
//!
//! Two configurations are compared by request: their layers decide which policy covers a method on a path, so shadowed and
//! removed routes are detected.

use hapax::core::JsonPointer;
use hapax::http::settings::{ExpiredKeysName, Text};
use hapax::http::{Anonymous, IdempotencyLayer, KeyMode, KeyPlace, PathPattern, Settings};
use http::Method;

use crate::config::Route;

/// How many routes are listed in a line.
const NAMED_MAX: usize = 20;

/// A path that is unlikely to match any route, for the policy of all other paths.
const UNNAMED: &str = "/_/_/_/_/_/_/_/_";

/// Routes and their layer.
pub(super) struct Routing<'a> {
    pub(super) layer: &'a IdempotencyLayer,
    pub(super) routes: &'a [Route],
}

/// The losses of protection when `before` is replaced by `after`, one line for each with the routes that are affected.
pub(super) fn removed(before: &Routing<'_>, after: &Routing<'_>) -> Vec<String> {
    let methods = before.methods();
    let mut found: Vec<(&'static str, Vec<String>)> = Vec::new();
    for path in paths(before, after) {
        for (loss, methods) in losses(before, after, path, &methods) {
            let route = format!("{} {}", methods.join(","), path.map_or("/**", PathPattern::as_str));
            match found.iter_mut().find(|(known, _)| *known == loss) {
                Some((_, routes)) => routes.push(route),
                None => found.push((loss, vec![route])),
            }
        }
    }
    found.into_iter().map(|(loss, routes)| format!("{loss}: {}", listed(&routes))).collect()
}

/// The losses of requests for `path`, each with the methods that are affected.
fn losses(
    before: &Routing<'_>,
    after: &Routing<'_>,
    path: Option<&PathPattern>,
    methods: &[Method],
) -> Vec<(&'static str, Vec<String>)> {
    let mut found: Vec<(&'static str, Vec<String>)> = Vec::new();
    let mut lose = |loss, method: &Method| match found.iter_mut().find(|(known, _)| *known == loss) {
        Some((_, methods)) => methods.push(method.to_string()),
        None => found.push((loss, vec![method.to_string()])),
    };
    for method in methods {
        let Some(had) = before.covering(path, method) else { continue };
        if path.is_some() && had.path.as_ref() == path && !after.names(path) {
            lose("the route was removed, its requests are matched by the routes after it", method);
        }
        match after.covering(path, method) {
            None => lose("requests are no longer covered", method),
            Some(has) => {
                let (had, has) = (Rules::of(had), Rules::of(has));
                let lost = LOSSES.iter().filter(|(is_lost, _)| is_lost(&had, &has));
                lost.for_each(|(_, loss)| lose(loss, method));
            }
        }
    }
    found
}

/// The paths of both configurations, and none for all other paths.
fn paths<'a>(before: &Routing<'a>, after: &Routing<'a>) -> Vec<Option<&'a PathPattern>> {
    let mut paths: Vec<Option<&PathPattern>> = Vec::new();
    for route in before.routes.iter().chain(after.routes) {
        if !paths.contains(&route.path.as_ref()) {
            paths.push(route.path.as_ref());
        }
    }
    paths
}

fn listed(routes: &[String]) -> String {
    let named = routes[..routes.len().min(NAMED_MAX)].join("; ");
    match routes.len().saturating_sub(NAMED_MAX) {
        0 => named,
        more => format!("{named}; and {more} more"),
    }
}

impl<'a> Routing<'a> {
    /// The route that covers requests for `path`.
    fn covering(&self, path: Option<&PathPattern>, method: &Method) -> Option<&'a Route> {
        let position = match path.map(sample) {
            None => self.layer.position_of(method, UNNAMED),
            Some(Some(path)) => self.layer.position_of(method, &path),
            // There is no sample path for a regular expression, so the route itself is taken.
            Some(None) => {
                let is_it = |route: &Route| route.path.as_ref() == path && covers(route, method);
                let named = self.routes.iter().position(is_it);
                named.or_else(|| self.layer.position_of(method, UNNAMED))
            }
        };
        self.routes.get(position?)
    }

    fn names(&self, path: Option<&PathPattern>) -> bool {
        self.routes.iter().any(|route| route.path.as_ref() == path)
    }

    /// All methods that any route covers.
    fn methods(&self) -> Vec<Method> {
        let mut methods: Vec<Method> = Vec::new();
        for method in self.routes.iter().flat_map(methods_of) {
            if !methods.contains(&method) {
                methods.push(method);
            }
        }
        methods
    }
}

fn methods_of(route: &Route) -> Vec<Method> {
    let methods = route.policy.settings().methods.unwrap_or_default();
    methods.into_iter().map(|Text(method)| method).collect()
}

fn covers(route: &Route, method: &Method) -> bool {
    methods_of(route).contains(method)
}

/// A path that the pattern matches; none for a regular expression.
fn sample(pattern: &PathPattern) -> Option<String> {
    let segments = pattern.as_str().split('/');
    let is_variable = |segment: &str| segment.starts_with(['*', '{']);
    let sample: Vec<&str> =
        segments.map(|segment| if is_variable(segment) { "_" } else { segment }).collect();
    let sample = sample.join("/");
    pattern.matches(&sample).then_some(sample)
}

/// The settings of a route that are compared.
struct Rules {
    settings: Settings,
    asks_first: bool,
}

impl Rules {
    fn of(route: &Route) -> Self {
        Self { settings: route.policy.settings(), asks_first: route.authorise.is_some() }
    }
}

type Loss = (fn(&Rules, &Rules) -> bool, &'static str);

/// The comparisons of two policies. Unsafe settings are warned about separately, at every reload.
const LOSSES: [Loss; 10] = [
    (
        |had, has| had.settings.key == Some(KeyMode::Required) && has.settings.key != Some(KeyMode::Required),
        "key = \"required\" was removed, requests without a key run unprotected",
    ),
    (
        |had, has| places(&had.settings).any(|place| !places(&has.settings).any(|known| known == place)),
        "a place of `header` or `key_from` was removed, keys in it are no longer read",
    ),
    (
        |had, has| derived(&had.settings).is_some_and(|fields| derived(&has.settings) != Some(fields)),
        "`key_derive` was removed or changed, requests without a key run unprotected or under other keys",
    ),
    (
        |had, has| derived(&has.settings).is_some() && window(&has.settings) < window(&had.settings),
        "`key_derive_window` was shortened, retries without a key may run again",
    ),
    (
        |had, has| had.asks_first && !has.asks_first,
        "`authorise` was removed, replays are sent without authorisation",
    ),
    (
        |had, has| had.settings.webhook.is_some() && had.settings.webhook != has.settings.webhook,
        "`webhook` was removed or changed, its signatures are no longer verified",
    ),
    (
        |had, has| {
            had.settings.anonymous == Some(Anonymous::Refuse)
                && has.settings.anonymous != Some(Anonymous::Refuse)
        },
        "anonymous = \"refuse\" was removed, callers without a principal share their keys",
    ),
    (
        |had, has| identity(&had.settings) != identity(&has.settings),
        "`namespace`, `principal`, `credential_headers`, `endpoint`, `scope_host` or `path_case` has changed, so the records \
         of earlier requests are not found and retries of those requests run again",
    ),
    (
        |had, has| span(has.settings.retention) < span(had.settings.retention) || frees_more(had, has),
        "results are kept for a shorter time, or more statuses release their key: retries may run again",
    ),
    (
        |had, has| {
            had.settings.expired_keys == Some(ExpiredKeysName::Refuse)
                && has.settings.expired_keys != Some(ExpiredKeysName::Refuse)
        },
        "expired_keys = \"refuse\" was removed, keys older than the retention run as new ones",
    ),
];

/// The places that keys are read from.
fn places(settings: &Settings) -> impl Iterator<Item = &Text<KeyPlace>> {
    settings.key_from.iter().flatten()
}

/// The fields that keys are derived from.
fn derived(settings: &Settings) -> Option<&Vec<Text<JsonPointer>>> {
    settings.key_derive.as_ref().filter(|fields| !fields.is_empty())
}

/// How long derived keys are kept.
fn window(settings: &Settings) -> std::time::Duration {
    span(settings.key_derive_window.or(settings.retention))
}

/// The settings that determine the scope of a record.
fn identity(settings: &Settings) -> impl PartialEq + use<'_> {
    let caller = (&settings.namespace, &settings.principal, &settings.credential_headers);
    (caller, settings.endpoint, settings.scope_host, settings.path_case)
}

fn span(span: Option<hapax::http::settings::Span>) -> std::time::Duration {
    span.map_or(std::time::Duration::ZERO, |span| span.0)
}

/// Whether more statuses release their key.
fn frees_more(had: &Rules, has: &Rules) -> bool {
    let freed = |rules: &Rules| rules.settings.release.clone().unwrap_or_default();
    let before = freed(had);
    freed(has).iter().any(|statuses| !before.contains(statuses))
}

#[cfg(test)]
mod tests;
