use super::*;

fn file(path: &str) -> StoreUrl {
    StoreUrl::File(path.into())
}

fn refusal(url: &str) -> String {
    format!("{:?}", StoreUrl::parse(url).unwrap_err())
}

#[test]
fn directories_are_named_in_every_usual_way() {
    let cases = [
        ("file:./hapax-data", file("./hapax-data")),
        ("file:data", file("data")),
        ("file:/var/lib/hapax", file("/var/lib/hapax")),
        ("file:///var/lib/hapax", file("/var/lib/hapax")),
        ("file://localhost/var/lib/hapax", file("/var/lib/hapax")),
        ("memory:", StoreUrl::Memory),
    ];
    for (url, expected) in cases {
        assert_eq!(StoreUrl::parse(url).unwrap(), expected, "{url}");
    }
}

#[test]
fn what_names_no_directory_of_this_machine_is_refused() {
    for url in ["file:", "file://", "file://other/dir", "file://localhost", "memory:x", "", "hapax-data"] {
        assert_eq!(StoreUrl::parse(url).unwrap_err().code(), Code::StoreUrlInvalid, "{url}");
    }
}

#[test]
fn an_unknown_scheme_is_told_with_the_nearest_known_one() {
    assert!(refusal("fiel:./data").contains("did you mean file:"));
    assert!(refusal("FILE:./data").contains("did you mean file:"));
    assert!(refusal("memroy:").contains("did you mean memory:"));
    assert!(refusal("carrier-pigeon:").contains("known stores are file:DIR"));
}

#[test]
fn a_password_in_an_unknown_url_is_not_repeated() {
    assert!(!refusal("postgrse://app:hunter2@db/hapax").contains("hunter2"));
}

#[tokio::test]
async fn memory_is_not_shared_with_this_process() {
    let refused = StoreUrl::Memory.open_shared(Access::Read).await.unwrap_err();
    assert_eq!(refused.code(), Code::StoreNotShared);
}

#[cfg(feature = "redis")]
#[test]
fn a_server_is_shown_without_its_password() {
    let url = StoreUrl::parse("rediss://app:hunter2@cache:6380/2?prefix=shop:").unwrap();
    assert_eq!(url.to_string(), "rediss://cache:6380/2?prefix=shop:");
    assert!(!format!("{url:?}").contains("hunter2"));
    for wrong in ["redis://app:hunter2@cache/x", "redis://:hunter2@cache?prefx=a", "redis:hunter2"] {
        let told = refusal(wrong);
        assert!(told.contains("redis: is wrong") && !told.contains("hunter2"), "{told}");
    }
}

#[cfg(feature = "postgres")]
#[test]
fn a_database_is_shown_without_its_password() {
    let url = StoreUrl::parse("postgresql://app:hunter2@db:5433/shop?schema=orders").unwrap();
    assert_eq!(url.to_string(), "postgres://db:5433/shop?schema=orders");
    assert!(!format!("{url:?}").contains("hunter2"));
    for wrong in ["postgres://app:hunter2@db:x/a", "postgres://:hunter2@db/a?shema=b", "postgres:hunter2"] {
        let told = refusal(wrong);
        assert!(told.contains("postgres: is wrong") && !told.contains("hunter2"), "{told}");
    }
}

#[test]
fn a_store_that_was_left_out_names_its_feature() {
    for (scheme, is_there) in [("postgres", cfg!(feature = "postgres")), ("redis", cfg!(feature = "redis"))] {
        assert_eq!(feature_of(scheme), (!is_there).then_some(scheme));
    }
    assert_eq!(feature_of("postgrse"), None);
}
