use super::{PathCase, PathPattern, compared};

#[track_caller]
fn check(pattern: &str, covered: &[&str], others: &[&str]) {
    let parsed: PathPattern = pattern.parse().unwrap();
    for path in covered {
        assert!(parsed.matches(path), "{pattern} must cover {path}");
    }
    for path in others {
        assert!(!parsed.matches(path), "{pattern} must not cover {path}");
    }
    assert_eq!(parsed.to_string(), pattern);
}

#[test]
fn m_01_a_pattern_covers_exactly_the_described_paths() {
    check("/", &["/"], &["", "*", "/a", "//"]);
    check(
        "/v1/payments",
        &["/v1/payments", "/v1/payments/"],
        &["/v1/payments//", "/v1/Payments", "/v1/payment", "v1/payments", "//v1/payments"],
    );
    check("/v1/payments/", &["/v1/payments/", "/v1/payments"], &["/v1/payments//", "/v1"]);
    check("/a/*/c", &["/a/b/c", "/a/%2F/c"], &["/a/c", "/a//c", "/a/b/b/c"]);
    check("/a/{id}", &["/a/b", "/a/b/", "/a/{id}"], &["/a", "/a/", "/a//", "/a/b/c", "/a/b//"]);
    check("/**", &["/", "/a", "/a/b/", "//"], &["", "*", "a"]);
    check("/a/**", &["/a", "/a/", "/a/b", "/a/b/c"], &["/", "/ab", "/b/a"]);
    check("/**/z", &["/z", "/z/", "/a/z", "/z/z", "/a/z/z"], &["/", "/z//", "/az"]);
    check("/a/**/**/b", &["/a/b", "/a/x/b", "/a/b/b"], &["/a", "/a/b/c"]);
    check("/**/a/*/**/b/c", &["/a/x/b/c", "/a/a/x/y/b/c", "/a/x/b/b/c"], &["/a/b/c", "/a/x/b/c/d", "/x/b/c"]);
    check("/pkg.Bank/*", &["/pkg.Bank/Transfer"], &["/pkg.Bank", "/pkg-Bank/Transfer"]);
}

#[test]
#[cfg(feature = "regex")]
fn m_01_a_regular_expression_matches_the_whole_path() {
    check("~/v[12]/pay", &["/v1/pay", "/v2/pay/"], &["/v1/pay/more", "/x/v1/pay", "/v1/pay\n", "/V1/pay"]);
    check("~/a|/b", &["/a", "/b", "/b/"], &["/a/b", "/ab", "/b//"]);
    check("~/c/", &["/c", "/c/"], &["/c//"]);
    let any_case = PathPattern::regex("/a|/[b]").unwrap().compared_by(PathCase::Ignore);
    assert!(any_case.matches("/A") && any_case.matches("/B/") && !any_case.matches("/AB"));
}

#[test]
fn m_01_case_counts_unless_it_is_ignored() {
    let pattern: PathPattern = "/v1/Payments/{id}".parse().unwrap();
    assert!(pattern.matches("/v1/Payments/x") && !pattern.matches("/V1/payments/x"));
    let pattern = pattern.compared_by(PathCase::Ignore);
    assert!(pattern.matches("/V1/payments/x") && !pattern.matches("/v1/payment/x"));
}

#[test]
fn s_01_equal_paths_have_one_normal_form() {
    let check = |case, paths: &[&str], expected| {
        for path in paths {
            assert_eq!(compared(path, case), expected, "{path}");
        }
    };
    check(PathCase::Exact, &["/orders", "/orders/"], "/orders");
    check(PathCase::Exact, &["/Orders/"], "/Orders");
    check(PathCase::Exact, &["/orders//"], "/orders//");
    check(PathCase::Exact, &["/"], "/");
    check(PathCase::Exact, &["//"], "//");
    check(PathCase::Ignore, &["/orders", "/ORDERS/", "/oRders"], "/orders");
    // Only A to Z: other bytes may be in any encoding.
    check(PathCase::Ignore, &["/%C3%84"], "/%c3%84");
}

#[test]
fn m_01_a_pattern_includes_another_if_it_covers_all_its_paths() {
    use PathCase::{Exact, Ignore};
    let check = |all: &str, some: &str, cases: [PathCase; 2], expected: bool| {
        let pattern = |text: &str, case| text.parse::<PathPattern>().unwrap().compared_by(case);
        let is_included = pattern(all, cases[0]).includes(&pattern(some, cases[1]));
        assert_eq!(is_included, expected, "{all} and {some}, {cases:?}");
    };
    for (all, some, expected) in [
        ("/**", "/a", true),
        ("/**", "/", true),
        ("/**", "/**/a/*", true),
        ("/a/**", "/a", true),
        ("/a/**", "/a/{id}/**", true),
        ("/a/**", "/**", false),
        ("/a/*", "/a/b", true),
        ("/a/*", "/a/{id}", true),
        ("/a/*", "/a/**", false),
        ("/a/*", "/a", false),
        ("/a/b", "/a/*", false),
        ("/a/b", "/a/b/", true),
        ("/**/z", "/a/**/z", true),
        ("/**/z", "/a/**", false),
        #[cfg(feature = "regex")]
        ("/**", "~/a.*", true),
        #[cfg(feature = "regex")]
        ("/a/**", "~/a.*", false),
        #[cfg(feature = "regex")]
        ("~/v[12]/.+", "/v1/payments", true),
        #[cfg(feature = "regex")]
        ("~/v[12]/.+", "/v1/{id}", false),
        #[cfg(feature = "regex")]
        ("~/a.*", "~/a.*", true),
        #[cfg(feature = "regex")]
        ("~/a.*", "~/a", false),
    ] {
        check(all, some, [Exact, Exact], expected);
        check(all, some, [Ignore, Exact], expected);
    }
    check("/A", "/a", [Ignore, Exact], true);
    check("/A", "/a", [Ignore, Ignore], true);
    check("/a", "/a", [Exact, Ignore], false);
    check("/1", "/1", [Exact, Ignore], true);
    check("/a/**", "/A/b", [Exact, Exact], false);
}

/// Checks every short pattern against every short path, with a naive matcher as the reference.
#[test]
fn m_01_matching_agrees_with_a_naive_matcher() {
    fn plainly(pattern: &[&str], path: &[&str]) -> bool {
        match (pattern, path) {
            ([], path) => path.is_empty(),
            (["**", after @ ..], path) => (0..=path.len()).any(|taken| plainly(after, &path[taken..])),
            (_, []) => false,
            ([one, after @ ..], [first, rest @ ..]) => {
                (one == first || *one == "*" && !first.is_empty()) && plainly(after, rest)
            }
        }
    }
    fn lists(words: &[&'static str], length: usize) -> Vec<Vec<&'static str>> {
        let Some(shorter) = length.checked_sub(1) else { return vec![Vec::new()] };
        let longer = |list: Vec<&'static str>| {
            words.iter().map(move |word| list.iter().copied().chain([*word]).collect()).collect::<Vec<_>>()
        };
        lists(words, shorter).into_iter().flat_map(longer).collect()
    }
    let lists_up_to =
        |words: &[&'static str], most| (1..=most).flat_map(|n| lists(words, n)).collect::<Vec<_>>();
    let paths = lists_up_to(&["a", "b", ""], 5);
    for pattern in lists_up_to(&["a", "b", "*", "**"], 4) {
        let parsed: PathPattern = format!("/{}", pattern.join("/")).parse().unwrap();
        for path in &paths {
            let text = format!("/{}", path.join("/"));
            // A single trailing slash is removed.
            let expected = match &path[..] {
                [before @ .., last, ""] if !last.is_empty() => {
                    plainly(&pattern, &[before, &[*last]].concat())
                }
                path => plainly(&pattern, path),
            };
            assert_eq!(parsed.matches(&text), expected, "{parsed} and {text}");
        }
    }
}

/// A matcher that backtracks to every `**` would not terminate.
#[test]
fn m_01_many_wildcards_on_a_long_path_take_bounded_time() {
    let pattern: PathPattern = format!("{}/b", "/**/a".repeat(40)).parse().unwrap();
    assert!(!pattern.matches(&"/a".repeat(10_000)));
    assert!(pattern.matches(&format!("{}/b", "/a".repeat(10_000))));
}

#[test]
fn m_01_an_invalid_pattern_is_refused_with_the_position() {
    let cases = [
        ("", 0, "starts with /"),
        ("v1/payments", 0, "starts with /"),
        ("*", 0, "starts with /"),
        ("/a/b*", 4, "whole segments"),
        ("/a/***", 3, "whole segments"),
        ("/a/{id}.json", 3, "whole segment"),
        ("/a/{id", 3, "whole segment"),
        ("/a/{}", 4, "a name of letters"),
        ("/a/{*rest}", 4, "write **"),
        ("/a/{x:[0-9]+}", 4, "a name of letters"),
        ("/a?b=c", 2, "ends before"),
        ("/a b", 2, "percent-encoded"),
        ("/ä", 1, "percent-encoded"),
        #[cfg(feature = "regex")]
        ("~(", 1, "does not compile"),
        #[cfg(feature = "regex")]
        ("~a)|(b", 1, "does not compile"),
        #[cfg(not(feature = "regex"))]
        ("~/a", 1, "feature `regex`"),
    ];
    for (text, at, why) in cases {
        let error = PathPattern::try_from(text).unwrap_err();
        assert_eq!(error.at(), at, "{text}: {error}");
        assert!(error.to_string().contains(why), "{text}: {error}");
    }
}
