//! Routes that no request reaches, because earlier routes match all their requests.
//!
//! Such a route is a misconfiguration that looks like protection.

use std::error::Error;
use std::fmt;

use http::Method;

use super::path::PathPattern;
use super::policy::{HttpPolicy, KeyMode};
use super::rules::Rules;
use crate::policy::Policy;

/// A route that no request reaches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnreachableRoute {
    index: usize,
    path: String,
    taken_by: Vec<String>,
}

impl UnreachableRoute {
    /// The index of the route, from zero.
    pub fn index(&self) -> usize {
        self.index
    }
}

impl fmt::Display for UnreachableRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, taken_by, .. } = self;
        let verb = if taken_by.len() == 1 { "takes" } else { "take" };
        let before = taken_by.join("` and `");
        write!(f, "no request reaches the route `{path}`: `{before}` before it {verb} all of them")
    }
}

impl Error for UnreachableRoute {}

/// The first of these routes that no request reaches. A route matches paths and methods, one that is off matches every
/// method, and the first route that matches a request applies (M-01, M-05).
///
/// The overlap of regular expressions is detected only in simple cases.
///
/// ```
/// use hapax::http::{HttpPolicy, unreachable_route};
///
/// let (all, orders) = ("/**".parse()?, "/orders".parse()?);
/// let policy = HttpPolicy::default();
/// let mistake = unreachable_route([(&all, &policy), (&orders, &policy)]).unwrap();
/// assert_eq!(mistake.to_string(), "no request reaches the route `/orders`: `/**` before it takes all of them");
/// # Ok::<(), hapax::http::PathPatternError>(())
/// ```
pub fn unreachable_route<'a>(
    routes: impl IntoIterator<Item = (&'a PathPattern, &'a HttpPolicy)>,
) -> Option<UnreachableRoute> {
    let compiled: Vec<_> =
        routes.into_iter().map(|(path, policy)| (path, policy.rules(&Policy::default()))).collect();
    first_unreachable(compiled.iter().map(|(path, rules)| (*path, rules)))
}

pub(super) fn first_unreachable<'a>(
    routes: impl IntoIterator<Item = (&'a PathPattern, &'a Rules)>,
) -> Option<UnreachableRoute> {
    let routes: Vec<_> = routes
        .into_iter()
        .map(|(path, policy)| (path.clone().compared_by(policy.scope.path_case), policy))
        .collect();
    let covered: Vec<&Method> = routes.iter().flat_map(|(_, policy)| methods(policy)).collect();
    (0..routes.len()).find_map(|index| {
        let (path, policy) = &routes[index];
        // Off matches every method; methods that no route covers pass unchanged anyway.
        let mut left: Vec<&Method> = if is_off(policy) { covered.clone() } else { methods(policy).collect() };
        let mut taken_by = Vec::new();
        for (earlier, takes) in routes[..index].iter().filter(|(earlier, _)| earlier.includes(path)) {
            let before = left.len();
            left.retain(|method| !is_off(takes) && !takes.methods.contains(method));
            if left.len() < before || is_off(takes) {
                taken_by.push(earlier.to_string());
            }
        }
        let path = path.to_string();
        (left.is_empty() && !taken_by.is_empty()).then_some(UnreachableRoute { index, path, taken_by })
    })
}

fn is_off(policy: &Rules) -> bool {
    policy.key == KeyMode::Off
}

/// The methods whose requests the route protects.
fn methods(policy: &Rules) -> impl Iterator<Item = &Method> {
    policy.methods.iter().filter(|_| !is_off(policy))
}

#[cfg(test)]
mod tests;
