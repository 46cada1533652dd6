//! DynamoDB Local. It keeps everything in memory and is no model of the service's durability, so it does not crash.

use std::ffi::OsString;
use std::net::SocketAddr;

use hapax_testkit::servers::DynamoDbServer;

use super::{Server, TIMEOUT_MS, listed, loopback};

/// The table of `hapax migrate`, without indexes for operators.
const TABLE: &str = r#"{"TableName": "hapax", "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}"#;

/// One DynamoDB Local with a table.
pub(in crate::chaos) struct LocalDynamoDb(DynamoDbServer);

impl LocalDynamoDb {
    pub(in crate::chaos) fn start() -> Self {
        let server = DynamoDbServer::start();
        server.call("CreateTable", TABLE);
        Self(server)
    }
}

impl Server for LocalDynamoDb {
    fn addresses(&self) -> Vec<SocketAddr> {
        vec![loopback(self.0.port())]
    }

    fn url(&self, through: &[SocketAddr]) -> String {
        format!("dynamodb://hapax?region=local&endpoint=http://{}&timeout_ms={TIMEOUT_MS}", listed(through))
    }

    /// Any credentials will do, but there must be some.
    fn environment(&self) -> Vec<(&'static str, OsString)> {
        vec![("AWS_ACCESS_KEY_ID", "test".into()), ("AWS_SECRET_ACCESS_KEY", "test".into())]
    }

    fn pause(&self) {
        self.0.pause();
    }

    fn resume(&self) {
        self.0.resume();
    }
}
