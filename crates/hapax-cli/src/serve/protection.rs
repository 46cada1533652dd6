//! What a reload takes away: protection that requests had and do not have any more.
//!
//! Two configurations are compared request by request: which policy covers a method on a path is asked of the layers
//! themselves, so a route that hides another one, or that is gone, is seen as requests will meet it.

use hapax::http::settings::{ExpiredKeysName, Text};
use hapax::http::{Anonymous, IdempotencyLayer, KeyMode, PathPattern, Settings};
use http::{HeaderName, Method};

use crate::config::Route;

/// How many routes a line names.
const NAMED_MAX: usize = 20;

/// A path that no route is likely to name: what holds there holds for the rest.
const UNNAMED: &str = "/_/_/_/_/_/_/_/_";

/// Routes and the layer that is made of them.
pub(super) struct Routing<'a> {
    pub(super) layer: &'a IdempotencyLayer,
    pub(super) routes: &'a [Route],
}

/// Everything that requests lose when `after` takes the place of `before`, one line for each loss with the routes that
/// have it.
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

/// What requests for `path` lose, each with the methods that do.
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
            lose("the route is gone, what it covered falls to the routes after it", method);
        }
        match after.covering(path, method) {
            None => lose("requests are not covered any more", method),
            Some(has) => {
                let (had, has) = (Rules::of(had), Rules::of(has));
                let lost = LOSSES.iter().filter(|(is_lost, _)| is_lost(&had, &has));
                lost.for_each(|(_, loss)| lose(loss, method));
            }
        }
    }
    found
}

/// Every path that either configuration names, and none for the rest.
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
    /// The route that covers a request to the paths of `path`.
    fn covering(&self, path: Option<&PathPattern>, method: &Method) -> Option<&'a Route> {
        let position = match path.map(sample) {
            None => self.layer.position_of(method, UNNAMED),
            Some(Some(path)) => self.layer.position_of(method, &path),
            // No path can be made from a regular expression. The route that has it covers its paths.
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

    /// Every method that some route covers.
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
    let said = route.policy.settings().methods.unwrap_or_default();
    said.into_iter().map(|Text(method)| method).collect()
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

/// What a route says.
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

/// What one policy has that another one lacks. Choices that give something up are warned of at every reload.
const LOSSES: [Loss; 9] = [
    (
        |had, has| had.settings.key == Some(KeyMode::Required) && has.settings.key != Some(KeyMode::Required),
        "key = \"required\" is gone, requests without a key run unprotected",
    ),
    (
        |had, has| headers(&had.settings).any(|name| !headers(&has.settings).any(|known| known == name)),
        "a header of `header` or `aliases` is gone, keys in it are not read any more",
    ),
    (
        |had, has| had.settings.key_pointer.is_some() && had.settings.key_pointer != has.settings.key_pointer,
        "`key_pointer` is gone or another one, keys where it pointed are not read any more",
    ),
    (
        |had, has| had.asks_first && !has.asks_first,
        "`authorise` is gone, replays are given out without asking",
    ),
    (
        |had, has| had.settings.webhook.is_some() && had.settings.webhook != has.settings.webhook,
        "`webhook` is gone or another one, its signatures are not checked any more",
    ),
    (
        |had, has| {
            had.settings.anonymous == Some(Anonymous::Refuse)
                && has.settings.anonymous != Some(Anonymous::Refuse)
        },
        "anonymous = \"refuse\" is gone, callers without a principal share their keys",
    ),
    (
        |had, has| identity(&had.settings) != identity(&has.settings),
        "`namespace`, `principal`, `credential_headers`, `endpoint`, `scope_host` or `path_case` is another one, so the records \
         of earlier requests are not found and retries of those requests run again",
    ),
    (
        |had, has| span(has.settings.retention) < span(had.settings.retention) || frees_more(had, has),
        "results are kept for a shorter time, or more statuses free their key: retries run again that were answered",
    ),
    (
        |had, has| {
            had.settings.expired_keys == Some(ExpiredKeysName::Refuse)
                && has.settings.expired_keys != Some(ExpiredKeysName::Refuse)
        },
        "expired_keys = \"refuse\" is gone, keys older than the retention run as new ones",
    ),
];

/// The headers that keys are read from.
fn headers(settings: &Settings) -> impl Iterator<Item = &HeaderName> {
    settings.header.iter().chain(settings.aliases.iter().flatten()).map(|Text(name)| name)
}

/// What a record is found by, beside the request itself.
fn identity(settings: &Settings) -> impl PartialEq + use<'_> {
    let caller = (&settings.namespace, &settings.principal, &settings.credential_headers);
    (caller, settings.endpoint, settings.scope_host, settings.path_case)
}

fn span(span: Option<hapax::http::settings::Span>) -> std::time::Duration {
    span.map_or(std::time::Duration::ZERO, |span| span.0)
}

/// Whether an answer frees its key that did not before.
fn frees_more(had: &Rules, has: &Rules) -> bool {
    let freed = |rules: &Rules| rules.settings.release.clone().unwrap_or_default();
    let before = freed(had);
    freed(has).iter().any(|statuses| !before.contains(statuses))
}

#[cfg(test)]
mod tests;
