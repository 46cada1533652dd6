use super::{Sentinels, parse};

#[test]
fn sentinels_and_the_name_they_use_are_read() {
    let (url, sentinels) = parse("rediss", "//app:secret@a:1,b/shop/3?prefix=x:").unwrap();
    assert_eq!(url, "rediss://app:secret@a:1/3?prefix=x:");
    let hosts = vec![("a".to_owned(), 1), ("b".to_owned(), 26379)];
    assert_eq!(sentinels, Sentinels { name: "shop".to_owned(), hosts });
    assert_eq!(parse("redis", "//a/shop").unwrap().0, "redis://a:26379/0");
}

#[test]
fn what_names_no_sentinel_or_no_server_is_refused() {
    for rest in ["", "//", "//a", "//a/", "//,b/shop", "//a:x/shop", "//:1/shop", "a/shop"] {
        let told = parse("redis", rest);
        assert!(told.is_err(), "{rest}: {told:?}");
    }
}
