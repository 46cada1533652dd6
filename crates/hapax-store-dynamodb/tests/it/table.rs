//! The table: created once, refused if it has another shape, and its promise.

use std::error::Error;

use hapax_core::{Promise, Store, StoreError, StoreErrorKind};
use hapax_store_dynamodb::{Credentials, DynamoDbStore, OpenError, Step};
use hapax_testkit::servers::DynamoDbServer;

use crate::fixture::{acquire, options};

fn refusal(error: &StoreError) -> &OpenError {
    error.source().unwrap().downcast_ref().unwrap()
}

#[tokio::test]
async fn a_table_is_created_once_and_only_on_request() {
    let server = DynamoDbServer::start();
    let options = options(&server, "made");
    let missing = options.clone().connect().await.unwrap_err();
    assert!(matches!(refusal(&missing), OpenError::Missing { table } if table == "made"));
    assert_eq!(options.missing().await.unwrap(), [Step::Table, Step::TimeToLive]);
    assert_eq!(options.missing().await.unwrap().len(), 2, "a dry run changes nothing");

    let both = tokio::join!(options.make(), options.make());
    assert!(both.0.is_ok() && both.1.is_ok(), "{both:?}");
    assert_eq!(options.make().await.unwrap(), []);
    let described = server.call("DescribeTable", r#"{"TableName": "made"}"#);
    assert!(described.contains(r#""BillingMode":"PAY_PER_REQUEST""#), "{described}");
    assert!(described.contains(r#""DeletionProtectionEnabled":true"#), "{described}");

    let health = options.connect().await.unwrap().health().await.unwrap();
    assert_eq!((health.store, health.promise), ("dynamodb", Promise::BestEffort));
    assert!(
        matches!(&health.warnings[..], [local] if local.contains("DynamoDB Local")),
        "{:?}",
        health.warnings
    );
}

#[tokio::test]
async fn a_foreign_table_is_refused_and_a_missing_ttl_is_a_warning() {
    let server = DynamoDbServer::start();
    let create = |table: &str, key: &str| {
        let body = format!(
            r#"{{"TableName": "{table}", "BillingMode": "PAY_PER_REQUEST",
                "AttributeDefinitions": [{{"AttributeName": "{key}", "AttributeType": "S"}}],
                "KeySchema": [{{"AttributeName": "{key}", "KeyType": "HASH"}}]}}"#
        );
        server.call("CreateTable", &body);
    };
    create("others", "order");
    let error = options(&server, "others").connect().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Incompatible);
    assert!(matches!(refusal(&error), OpenError::Shape { table } if table == "others"));
    let error = options(&server, "others").make().await.unwrap_err();
    assert!(matches!(refusal(&error), OpenError::Shape { .. }), "and it is left unchanged");

    create("by-hand", "id");
    let store = options(&server, "by-hand").connect().await.unwrap();
    acquire(&store, "works").await;
    let health = store.health().await.unwrap();
    assert!(health.warnings.iter().any(|warning| warning.contains("sweep")), "{:?}", health.warnings);
    assert_eq!(options(&server, "by-hand").make().await.unwrap(), [Step::TimeToLive]);
}

#[tokio::test]
async fn secrets_are_never_shown() {
    let server = DynamoDbServer::start();
    let options = DynamoDbStore::options(&server.url("secret"))
        .unwrap()
        .credentials(Credentials::new("canarykey", "canary-secret").with_session_token("canary-token"));
    options.make().await.unwrap();
    let store = options.clone().connect().await.unwrap();
    let error = DynamoDbStore::options(&server.url("absent"))
        .unwrap()
        .credentials(Credentials::new("canarykey", "canary\nsecret").with_session_token("canary\ntoken"))
        .connect()
        .await
        .unwrap_err();
    let shown = format!("{store:?} {options:?} {error:?} {error}");
    assert!(!shown.contains("canary"), "{shown}");
}
