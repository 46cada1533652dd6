use super::*;

fn file(path: &str) -> StoreUrl {
    StoreUrl::File(path.into())
}

fn refusal(url: &str) -> String {
    format!("{:?}", StoreUrl::parse(url).unwrap_err())
}

#[test]
fn directories_are_parsed_in_all_usual_forms() {
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
fn urls_without_a_local_directory_are_refused() {
    for url in ["file:", "file://", "file://other/dir", "file://localhost", "memory:x", "", "hapax-data"] {
        assert_eq!(StoreUrl::parse(url).unwrap_err().code(), Code::StoreUrlInvalid, "{url}");
    }
}

#[test]
fn the_error_about_an_unknown_scheme_names_the_nearest_one() {
    assert!(refusal("fiel:./data").contains("did you mean file:"));
    assert!(refusal("FILE:./data").contains("did you mean file:"));
    assert!(refusal("memroy:").contains("did you mean memory:"));
    assert!(refusal("carrier-pigeon:").contains("known stores are file:DIR"));
}

#[test]
fn the_error_about_an_unknown_scheme_repeats_no_password() {
    assert!(!refusal("postgrse://app:hunter2@db/hapax").contains("hunter2"));
}

#[tokio::test]
async fn a_memory_store_cannot_be_opened_by_another_process() {
    let refused = StoreUrl::Memory.open_shared(Access::Read).await.unwrap_err();
    assert_eq!(refused.code(), Code::StoreNotShared);
}

#[cfg(feature = "dynamodb")]
#[test]
fn a_table_is_printed_with_its_region() {
    let url = StoreUrl::parse("dynamodb://shop?region=eu-central-1&timeout_ms=500").unwrap();
    assert_eq!(url.to_string(), "dynamodb://shop?region=eu-central-1");
    for wrong in ["dynamodb:shop", "dynamodb://shop?region=EU", "dynamodb://shop?region=eu&tiemout_ms=5"] {
        let message = refusal(wrong);
        assert!(
            message.contains("dynamodb: the store's URL is wrong")
                && message.contains("docs/guide/dynamodb.md"),
            "{message}"
        );
    }
}

#[cfg(not(feature = "dynamodb"))]
#[test]
fn the_error_about_a_missing_store_names_its_feature() {
    assert!(refusal("dynamodb://shop?region=eu-central-1").contains("--features dynamodb"));
}

#[cfg(feature = "redis")]
#[test]
fn a_redis_url_is_printed_without_its_password() {
    let url = StoreUrl::parse("rediss://app:hunter2@cache:6380/2?prefix=shop:").unwrap();
    assert_eq!(url.to_string(), "rediss://cache:6380/2?prefix=shop:");
    assert!(!format!("{url:?}").contains("hunter2"));
    let url = StoreUrl::parse("redis+cluster://app:hunter2@a:7000,b?prefix=shop:").unwrap();
    assert_eq!(url.to_string(), "redis+cluster://a:7000,b:6379?prefix=shop:");
    assert!(!format!("{url:?}").contains("hunter2"));
    assert!(!refusal("redis+cluster://app:hunter2@a/3").contains("hunter2"));
    for wrong in ["redis://app:hunter2@cache/x", "redis://:hunter2@cache?prefx=a", "redis:hunter2"] {
        let message = refusal(wrong);
        assert!(
            message.contains("redis: the store's URL is wrong") && !message.contains("hunter2"),
            "{message}"
        );
    }
}

#[cfg(feature = "postgres")]
#[test]
fn a_postgres_url_is_printed_without_its_password() {
    let url = StoreUrl::parse("postgresql://app:hunter2@db:5433/shop?schema=orders").unwrap();
    assert_eq!(url.to_string(), "postgres://db:5433/shop?schema=orders");
    assert!(!format!("{url:?}").contains("hunter2"));
    for wrong in ["postgres://app:hunter2@db:x/a", "postgres://:hunter2@db/a?shema=b", "postgres:hunter2"] {
        let message = refusal(wrong);
        assert!(
            message.contains("postgres: the store's URL is wrong") && !message.contains("hunter2"),
            "{message}"
        );
    }
}

#[test]
fn without_passwords_keeps_the_user() {
    for (typed, shown) in [
        ("postgres://app:hunter2@db:5433/shop?schema=orders", "postgres://app@db:5433/shop?schema=orders"),
        ("postgresql://app@db/shop", "postgresql://app@db/shop"),
        ("postgres://app:hun/ter?2@db/shop", "postgres://app@db/shop"),
        ("redis://:hunter2@cache:6380/2?prefix=shop:", "redis://cache:6380/2?prefix=shop:"),
        (
            "redis+sentinel://a:hunter2@s/m?sentinel_password=hunter2&prefix=a:",
            "redis+sentinel://a@s/m?prefix=a:",
        ),
        ("redis+sentinel://s/m?sentinel_password=hunter2", "redis+sentinel://s/m"),
        ("dynamodb://shop?region=eu-central-1", "dynamodb://shop?region=eu-central-1"),
        ("file:///srv/a@b:c@d", "file:///srv/a@b:c@d"),
        ("file:data", "file:data"),
    ] {
        assert_eq!(without_passwords(typed), shown, "{typed}");
    }
}

#[test]
fn feature_of_names_the_feature_of_a_missing_store() {
    for (scheme, is_there) in [("postgres", cfg!(feature = "postgres")), ("redis", cfg!(feature = "redis"))] {
        assert_eq!(feature_of(scheme), (!is_there).then_some(scheme));
    }
    assert_eq!(feature_of("postgrse"), None);
}

#[cfg(all(feature = "dynamodb", feature = "postgres", feature = "redis"))]
#[test]
fn stores_on_another_machine_without_tls_are_detected() {
    let cases = [
        ("file:records", false),
        ("memory:", false),
        ("redis://127.0.0.1:6379", false),
        ("redis://localhost", false),
        ("redis://cache.example:6379/1", true),
        ("rediss://cache.example", false),
        ("redis+cluster://127.0.0.1:7000,10.0.0.7:7000", true),
        ("rediss+cluster://10.0.0.7:7000,10.0.0.8", false),
        ("postgres://127.0.0.1/orders", false),
        ("postgres://[::1]/orders", false),
        ("postgres://database/orders", true),
        ("postgres://database/orders?sslmode=prefer", true),
        ("postgres://database/orders?sslmode=disable", true),
        ("postgres://database/orders?sslmode=require", false),
        ("postgres://database/orders?sslmode=verify-full", false),
        ("dynamodb://orders?region=eu-central-1", false),
        ("dynamodb://orders?region=eu-central-1&endpoint=http://127.0.0.1:8000", false),
        ("dynamodb://orders?region=eu-central-1&endpoint=http%3A%2F%2F10.0.0.7", true),
        ("dynamodb://orders?region=eu-central-1&endpoint=https://10.0.0.7", false),
    ];
    for (url, expected) in cases {
        assert_eq!(StoreUrl::parse(url).unwrap().is_unencrypted(), expected, "{url}");
    }
    let tiers = StoreUrl::parse("postgres://127.0.0.1/orders")
        .unwrap()
        .with_fast_tier(Some("redis://cache?prefix=a:"));
    assert!(tiers.unwrap().is_unencrypted());
}

#[tokio::test]
async fn a_url_has_the_outcome_limit_of_its_store() {
    let dir = tempfile::tempdir().unwrap();
    for url in [StoreUrl::File(dir.path().join("store")), StoreUrl::Memory] {
        let store = url.open_or_create().await.unwrap();
        assert_eq!(url.outcome_bytes_max(), store.outcome_bytes_max(), "{url}");
    }
}

#[cfg(all(feature = "dynamodb", feature = "postgres", feature = "redis"))]
#[test]
fn a_url_option_sets_the_outcome_limit() {
    let postgres = "postgres://127.0.0.1/orders?outcome_bytes_max=7";
    let cases = [
        (postgres, 7),
        ("postgres://127.0.0.1/orders", hapax_store_postgres::OUTCOME_BYTES_MAX_DEFAULT),
        ("redis://127.0.0.1?outcome_bytes_max=7", 7),
        ("dynamodb://orders?region=eu-central-1&outcome_bytes_max=7", 7),
    ];
    for (url, expected) in cases {
        assert_eq!(StoreUrl::parse(url).unwrap().outcome_bytes_max(), expected, "{url}");
    }
    // The fast tier keeps what fits, and decides nothing.
    let tiers = StoreUrl::parse(postgres)
        .unwrap()
        .with_fast_tier(Some("redis://cache?prefix=a:&outcome_bytes_max=5"));
    assert_eq!(tiers.unwrap().outcome_bytes_max(), 7);
}
