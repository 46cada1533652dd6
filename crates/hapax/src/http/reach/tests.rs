use http::Method;

use super::unreachable_route;
use crate::http::path::PathCase;
use crate::http::{HttpPolicy, KeyMode};

fn methods(methods: &[Method]) -> HttpPolicy {
    HttpPolicy::default().methods(methods.iter().cloned())
}

/// Checks which route is not reached, and which routes match its requests.
fn check(routes: &[(&str, HttpPolicy)], expected: Option<(usize, &[&str])>) {
    let routes: Vec<_> = routes.iter().map(|(path, policy)| (path.parse().unwrap(), policy)).collect();
    let found = unreachable_route(routes.iter().map(|(path, policy)| (path, *policy)));
    let reported = found.as_ref().map(|found| (found.index(), found.taken_by.clone()));
    let owned = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>();
    let expected = expected.map(|(index, paths)| (index, owned(paths)));
    assert_eq!(reported, expected, "{routes:?}");
}

#[test]
fn m_01_a_route_included_in_an_earlier_one_is_not_reached() {
    let usual = HttpPolicy::default;
    let required = || usual().key(KeyMode::Required);
    check(&[("/a", usual()), ("/b", usual()), ("/**", usual())], None);
    check(&[("/**", usual()), ("/a", required())], Some((1, &["/**"])));
    check(&[("/a", usual()), ("/a/", required())], Some((1, &["/a"])));
    check(&[("/a/**", usual()), ("/b", usual()), ("/a/{id}", required())], Some((2, &["/a/**"])));
    check(&[("/**", methods(&[Method::POST])), ("/a", methods(&[Method::DELETE]))], None);
    check(&[("/**", methods(&[Method::POST])), ("/a", methods(&[Method::POST, Method::DELETE]))], None);
}

#[test]
fn m_01_several_routes_together_can_hide_another() {
    let routes = [
        ("/**", methods(&[Method::POST])),
        ("/a/*", methods(&[Method::PUT, Method::PATCH])),
        ("/a/b", HttpPolicy::default()),
    ];
    check(&routes, Some((2, &["/**", "/a/*"])));
}

#[test]
fn m_05_a_route_that_is_off_matches_every_method() {
    let usual = HttpPolicy::default;
    check(&[("/**", HttpPolicy::off()), ("/a", methods(&[Method::DELETE]))], Some((1, &["/**"])));
    check(&[("/a", HttpPolicy::off()), ("/**", usual())], None);
    check(&[("/**", usual()), ("/a", HttpPolicy::off())], Some((1, &["/**"])));
    // It excludes DELETE from the last one.
    check(&[("/**", usual()), ("/a", HttpPolicy::off()), ("/**", methods(&[Method::DELETE]))], None);
    check(&[("/a", HttpPolicy::off()), ("/b", HttpPolicy::off())], None);
    check(&[("/**", HttpPolicy::off()), ("/b", HttpPolicy::off())], Some((1, &["/**"])));
}

#[test]
fn m_01_case_is_compared_as_in_the_routes() {
    let usual = HttpPolicy::default;
    let ignoring = || usual().path_case(PathCase::Ignore);
    check(&[("/A", usual()), ("/a", usual())], None);
    check(&[("/A", ignoring()), ("/a", usual())], Some((1, &["/A"])));
    check(&[("/a", usual()), ("/a", ignoring())], None);
}
