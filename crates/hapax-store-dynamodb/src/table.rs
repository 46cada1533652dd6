//! The table: what it must be like, how it is made, and what may be promised of it.

use std::fmt;
use std::time::Duration;

use hapax_core::{Health, Promise, StoreError};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::config::Replicas;
use crate::error::{Effect, OpenError};
use crate::link::{Call, Failed, Link};

/// A table takes some seconds to be made; one that is not there after this never will be.
const MADE_WITHIN: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// What this store is called where its health is told.
const KIND: &str = "dynamodb";

/// One thing that is done to make a table a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Step {
    /// The table is made, paid by request and protected from deletion.
    Table,
    /// DynamoDB is told to remove items whose `ttl` is past.
    TimeToLive,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Table => "make the table, paid by request and protected from deletion",
            Self::TimeToLive => "turn on the removal of items by their attribute ttl",
        })
    }
}

/// Looks at the table and says what may be promised; fails where it cannot be a store.
pub(crate) async fn look(link: &Link, op: &'static str) -> Result<Health, StoreError> {
    let table = describe(link, op).await?.ok_or_else(|| missing_table(link))?;
    let mut warnings = Vec::new();
    let is_strong = table["MultiRegionConsistency"] == "STRONG";
    let is_replicated = table["Replicas"].as_array().is_some_and(|replicas| !replicas.is_empty());
    let mut promise = Promise::AtMostOnce;
    if is_replicated && is_strong {
        warnings.push(
            "the table has strongly consistent replicas, which this store was never tested on".to_owned(),
        );
    } else if is_replicated {
        promise = Promise::BestEffort;
        warnings.push("other Regions write to this table: two of them can both claim a key".to_owned());
    }
    if table["TableArn"].as_str().is_some_and(|arn| arn.starts_with("arn:aws:dynamodb:ddblocal:")) {
        promise = Promise::BestEffort;
        warnings.push("this is DynamoDB Local, which is for tests and promises nothing".to_owned());
    }
    if !has_time_to_live(link, op).await? {
        warnings.push(
            "expired records stay until a sweep removes them; `hapax migrate` lets DynamoDB do it".to_owned(),
        );
    }
    Ok(Health::new(KIND, promise, warnings))
}

/// What may be promised of the table, or of the one that [`make`] would make. It makes nothing.
pub(crate) async fn look_ahead(link: &Link) -> Result<Health, StoreError> {
    if describe(link, "health").await?.is_some() {
        return look(link, "health").await;
    }
    if link.options.endpoint.is_of_aws() {
        return Ok(Health::new(KIND, Promise::AtMostOnce, Vec::new()));
    }
    // A table says by its ARN whether it is of DynamoDB Local; nothing else does.
    let warning = format!(
        "{} is not an endpoint of AWS: what it promises is known when there is a table",
        link.options.endpoint.authority()
    );
    Ok(Health::new(KIND, Promise::BestEffort, vec![warning]))
}

/// What [`make`] would do.
pub(crate) async fn missing(link: &Link) -> Result<Vec<Step>, StoreError> {
    if describe(link, "migrate").await?.is_none() {
        return Ok(vec![Step::Table, Step::TimeToLive]);
    }
    Ok(if has_time_to_live(link, "migrate").await? { vec![] } else { vec![Step::TimeToLive] })
}

/// Makes the table a store. Two that do it at once do it once.
pub(crate) async fn make(link: &Link) -> Result<Vec<Step>, StoreError> {
    let steps = missing(link).await?;
    for step in &steps {
        match step {
            Step::Table => create(link).await?,
            Step::TimeToLive => {
                let specification = json!({"Enabled": true, "AttributeName": "ttl"});
                let body = json!({"TableName": link.options.table, "TimeToLiveSpecification": specification});
                let done = link.try_call(call(link, "migrate", "UpdateTimeToLive"), &body).await;
                // Somebody else may have done it in between.
                if done.is_err() && !has_time_to_live(link, "migrate").await? {
                    done.map_err(|failed| failed.error(call(link, "migrate", "UpdateTimeToLive")))?;
                }
            }
        }
    }
    Ok(steps)
}

async fn create(link: &Link) -> Result<(), StoreError> {
    let body = json!({
        "TableName": link.options.table,
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST",
        "DeletionProtectionEnabled": true,
    });
    let creating = call(link, "migrate", "CreateTable");
    match link.try_call(creating, &body).await {
        Ok(_) => {}
        Err(Failed::Answered(answered)) if answered.name == "ResourceInUseException" => {}
        Err(failed) => return Err(failed.error(creating)),
    }
    let until = Instant::now() + MADE_WITHIN;
    loop {
        let status = describe(link, "migrate").await?.map(|table| table["TableStatus"].clone());
        if status == Some(json!("ACTIVE")) {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(missing_table(link));
        }
        sleep(LOOK_EVERY).await;
    }
}

/// The table as the service describes it, if there is one. One of another shape, and one that other Regions write to, is
/// refused.
async fn describe(link: &Link, op: &'static str) -> Result<Option<Value>, StoreError> {
    let asking = call(link, op, "DescribeTable");
    let table = link.options.table.clone();
    let described = match link.try_call(asking, &json!({"TableName": table})).await {
        Ok(mut described) => described["Table"].take(),
        Err(Failed::Answered(answered)) if answered.name == "ResourceNotFoundException" => return Ok(None),
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
    if is_replicated && !is_strong && link.options.replicas == Replicas::Refuse {
        return Err(OpenError::Replicated { table }.into());
    }
    Ok(Some(described))
}

async fn has_time_to_live(link: &Link, op: &'static str) -> Result<bool, StoreError> {
    let body = json!({"TableName": link.options.table});
    let described = link.call(call(link, op, "DescribeTimeToLive"), &body).await?;
    let described = &described["TimeToLiveDescription"];
    let is_on = ["ENABLED", "ENABLING"].iter().any(|on| described["TimeToLiveStatus"] == *on);
    Ok(is_on && described["AttributeName"] == "ttl")
}

fn call(link: &Link, op: &'static str, action: &'static str) -> Call<'static> {
    Call { op, effect: Effect::Read, deadline: link.deadline(), action }
}

fn missing_table(link: &Link) -> StoreError {
    OpenError::Missing { table: link.options.table.clone() }.into()
}
