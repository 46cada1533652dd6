use super::{Sentinels, parse_cluster, parse_sentinels};

#[test]
fn parses_sentinels_and_the_name_they_monitor() {
    let (url, sentinels) = parse_sentinels("rediss", "//app:secret@a:1,b/shop/3?prefix=x:").unwrap();
    assert_eq!(url, "rediss://app:secret@a:1/3?prefix=x:");
    let hosts = vec![("a".to_owned(), 1), ("b".to_owned(), 26379)];
    assert_eq!(sentinels, Sentinels { name: "shop".to_owned(), hosts });
    assert_eq!(parse_sentinels("redis", "//a/shop").unwrap().0, "redis://a:26379/0");
}

#[test]
fn refuses_a_url_without_a_sentinel_or_a_name() {
    for rest in ["", "//", "//a", "//a/", "//,b/shop", "//a:x/shop", "//:1/shop", "a/shop"] {
        let parsed = parse_sentinels("redis", rest);
        assert!(parsed.is_err(), "{rest}: {parsed:?}");
    }
}

#[test]
fn parses_cluster_members() {
    let (url, members) = parse_cluster("rediss", "//app:secret@a:1,b?prefix=x:").unwrap();
    assert_eq!(url, "rediss://app:secret@a:1/0?prefix=x:");
    assert_eq!(members, [("a".to_owned(), 1), ("b".to_owned(), 6379)]);
    assert_eq!(parse_cluster("redis", "//a/0").unwrap().0, "redis://a:6379/0");
    for rest in ["", "//", "//a/1", "//a,,b", "//a:x", "a"] {
        let parsed = parse_cluster("redis", rest);
        assert!(parsed.is_err(), "{rest}: {parsed:?}");
    }
}
