//! The table: its required shape, how it is created, and what can be promised on it.

use std::fmt;
use std::time::Duration;

use hapax_core::{Health, Promise, StoreError};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::client::{Call, CallError, Client};
use crate::config::Replicas;
use crate::error::{Effect, OpenError};

/// How long to wait for a new table, which takes some seconds.
const MADE_WITHIN: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The name of this store in its health.
const KIND: &str = "dynamodb";

/// One step to make a table a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Step {
    /// The table is created, with on-demand billing and deletion protection.
    Table,
    /// DynamoDB is configured to remove items whose `ttl` has passed.
    TimeToLive,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Table => "create the table with on-demand billing and deletion protection",
            Self::TimeToLive => "enable the removal of items by their attribute ttl",
        })
    }
}

/// Reads the table's description and evaluates its promise; fails if it cannot be a store.
pub(crate) async fn probe(client: &Client, op: &'static str) -> Result<Health, StoreError> {
    let table = describe(client, op).await?.ok_or_else(|| missing_table(client))?;
    let mut warnings = Vec::new();
    let is_strong = table["MultiRegionConsistency"] == "STRONG";
    let is_replicated = table["Replicas"].as_array().is_some_and(|replicas| !replicas.is_empty());
    let mut promise = Promise::AtMostOnce;
    if is_replicated && is_strong {
        warnings.push(
            "the table has strongly consistent replicas, which this store has not been tested with"
                .to_owned(),
        );
    } else if is_replicated {
        promise = Promise::BestEffort;
        warnings.push("other Regions write to this table: two of them can both claim a key".to_owned());
    }
    if table["TableArn"].as_str().is_some_and(|arn| arn.starts_with("arn:aws:dynamodb:ddblocal:")) {
        promise = Promise::BestEffort;
        warnings.push("this is DynamoDB Local, which is for tests and guarantees nothing".to_owned());
    }
    if !has_time_to_live(client, op).await? {
        warnings.push(
            "expired records stay until a sweep removes them; `hapax migrate` makes DynamoDB remove them"
                .to_owned(),
        );
    }
    Ok(Health::new(KIND, promise, warnings))
}

/// The promise of the table, or of the one that [`make`] would create. Creates nothing.
pub(crate) async fn preview_health(client: &Client) -> Result<Health, StoreError> {
    if describe(client, "health").await?.is_some() {
        return probe(client, "health").await;
    }
    if client.options.endpoint.is_of_aws() {
        return Ok(Health::new(KIND, Promise::AtMostOnce, Vec::new()));
    }
    // Only a table's ARN reveals DynamoDB Local.
    let warning = format!(
        "{} is not an endpoint of AWS: its promise is known once the table exists",
        client.options.endpoint.authority()
    );
    Ok(Health::new(KIND, Promise::BestEffort, vec![warning]))
}

/// The steps that [`make`] would take.
pub(crate) async fn missing(client: &Client) -> Result<Vec<Step>, StoreError> {
    if describe(client, "migrate").await?.is_none() {
        return Ok(vec![Step::Table, Step::TimeToLive]);
    }
    Ok(if has_time_to_live(client, "migrate").await? { vec![] } else { vec![Step::TimeToLive] })
}

/// Makes the table a store. Concurrent calls are safe.
pub(crate) async fn make(client: &Client) -> Result<Vec<Step>, StoreError> {
    let steps = missing(client).await?;
    for step in &steps {
        match step {
            Step::Table => create(client).await?,
            Step::TimeToLive => {
                let specification = json!({"Enabled": true, "AttributeName": "ttl"});
                let body =
                    json!({"TableName": client.options.table, "TimeToLiveSpecification": specification});
                let done = client.try_call(call(client, "migrate", "UpdateTimeToLive"), &body).await;
                // Another process may have done it in between.
                if done.is_err() && !has_time_to_live(client, "migrate").await? {
                    done.map_err(|failed| failed.error(call(client, "migrate", "UpdateTimeToLive")))?;
                }
            }
        }
    }
    Ok(steps)
}

async fn create(client: &Client) -> Result<(), StoreError> {
    let body = json!({
        "TableName": client.options.table,
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST",
        "DeletionProtectionEnabled": true,
    });
    let creating = call(client, "migrate", "CreateTable");
    match client.try_call(creating, &body).await {
        Ok(_) => {}
        Err(CallError::Service(answered)) if answered.name == "ResourceInUseException" => {}
        Err(failed) => return Err(failed.error(creating)),
    }
    let until = Instant::now() + MADE_WITHIN;
    loop {
        let status = describe(client, "migrate").await?.map(|table| table["TableStatus"].clone());
        if status == Some(json!("ACTIVE")) {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(missing_table(client));
        }
        sleep(LOOK_EVERY).await;
    }
}

/// The table's description, if it exists. A table of another shape, or with replicas in other Regions, is refused.
async fn describe(client: &Client, op: &'static str) -> Result<Option<Value>, StoreError> {
    let asking = call(client, op, "DescribeTable");
    let table = client.options.table.clone();
    let described = match client.try_call(asking, &json!({"TableName": table})).await {
        Ok(mut described) => described["Table"].take(),
        Err(CallError::Service(answered)) if answered.name == "ResourceNotFoundException" => return Ok(None),
        Err(failed) => return Err(failed.error(asking)),
    };
    let has_key = described["KeySchema"] == json!([{"AttributeName": "id", "KeyType": "HASH"}])
        && described["AttributeDefinitions"]
            .as_array()
            .is_some_and(|all| all.contains(&json!({"AttributeName": "id", "AttributeType": "S"})));
    if !has_key {
        return Err(OpenError::Shape { table }.into());
    }
    let is_replicated = described["Replicas"].as_array().is_some_and(|replicas| !replicas.is_empty());
    let is_strong = described["MultiRegionConsistency"] == "STRONG";
    if is_replicated && !is_strong && client.options.replicas == Replicas::Refuse {
        return Err(OpenError::Replicated { table }.into());
    }
    Ok(Some(described))
}

async fn has_time_to_live(client: &Client, op: &'static str) -> Result<bool, StoreError> {
    let body = json!({"TableName": client.options.table});
    let described = client.call(call(client, op, "DescribeTimeToLive"), &body).await?;
    let described = &described["TimeToLiveDescription"];
    let is_on = ["ENABLED", "ENABLING"].iter().any(|on| described["TimeToLiveStatus"] == *on);
    Ok(is_on && described["AttributeName"] == "ttl")
}

fn call(client: &Client, op: &'static str, action: &'static str) -> Call<'static> {
    Call { op, effect: Effect::Read, deadline: client.deadline(), action }
}

fn missing_table(client: &Client) -> StoreError {
    OpenError::Missing { table: client.options.table.clone() }.into()
}
