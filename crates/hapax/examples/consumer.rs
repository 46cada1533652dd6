//! A consumer of orders: copies, failures that pass, failures that do not, and an event that comes from the future.
//!
//! `cargo run -p hapax --example consumer`
#![allow(clippy::print_stdout, reason = "an example shows what happens")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hapax::events::dead_letter::{Filter, Redrive, list};
use hapax::events::{BackOff, Consumer, Data, Event, Router};
use hapax::{Context, Fail, Hapax, MemoryStore};
use hapax_testkit::events::{Duplicator, MemoryBroker};
use parking_lot::Mutex;

#[derive(serde::Deserialize)]
struct Registered {
    name: String,
}

#[derive(serde::Deserialize)]
struct StateChanged {
    state: String,
}

/// What the handlers share.
#[derive(Clone, Default)]
struct App {
    assets: Arc<Mutex<BTreeMap<String, String>>>,
    effects: Arc<Mutex<u32>>,
}

async fn registered(
    app: App,
    cx: Context,
    (event, Data(asset)): (Event, Data<Registered>),
) -> Result<(), Fail<String>> {
    if cx.attempt() == 1 && asset.name == "press" {
        // A plain error is tried again.
        return Err("the inventory is busy".to_owned())?;
    }
    app.assets.lock().insert(event.subject.clone().unwrap_or_default(), format!("{} is new", asset.name));
    *app.effects.lock() += 1;
    Ok(())
}

async fn state_changed(
    app: App,
    _cx: Context,
    (event, Data(change)): (Event, Data<StateChanged>),
) -> Result<(), Fail<String>> {
    if change.state.is_empty() {
        // A permanent one is a dead letter.
        return Err(Fail::permanent("a state has a name".to_owned()));
    }
    app.assets.lock().insert(event.subject.clone().unwrap_or_default(), change.state);
    *app.effects.lock() += 1;
    Ok(())
}

fn router(app: &App) -> Router<App> {
    Router::new(app.clone()).on("asset.registered", registered).on("asset.state_changed", state_changed)
}

/// An event about an asset. Those of one asset are processed in order.
fn event(kind: &str, id: &str, asset: &str, data: &serde_json::Value) -> Event {
    Event::new(kind).source("/inventory").id(id).subject(asset).order(asset).data(data.to_string())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hapax = Hapax::new(MemoryStore::new());
    let app = App::default();
    let pauses = BackOff::new(Duration::from_millis(10), Duration::from_secs(1));
    let assets = Consumer::new(&hapax, "assets").back_off(pauses);

    let broker = MemoryBroker::new();
    for (number, name) in ["press", "lathe", "saw"].into_iter().enumerate() {
        let data = serde_json::json!({ "name": name });
        broker.send(event("asset.registered", &format!("r{number}"), name, &data));
        let data = serde_json::json!({ "state": "running" });
        broker.send(event("asset.state_changed", &format!("s{number}"), name, &data));
    }
    broker.send(event("asset.state_changed", "empty", "saw", &serde_json::json!({ "state": "" })));
    broker.send(event("asset.painted", "p1", "saw", &serde_json::json!({ "colour": "green" })));
    broker.close();

    // Every event is delivered twice, in a random order, and each has its effect once.
    let source = Duplicator::new(broker.source(), 7);
    assets.run(source, router(&app)).until(std::future::pending()).await?;
    println!("{} effects: {:?}", app.effects.lock(), app.assets.lock());
    assert_eq!(*app.effects.lock(), 6);
    assert_eq!((broker.waiting(), broker.in_flight(), broker.acked().len()), (0, 0, 8));

    // Two could not be processed. They are kept with their reasons.
    let dead = list(&**hapax.store(), &Filter::default().consumer("assets"), None).await?.dead_letters;
    for letter in &dead {
        println!(
            "dead letter: {} {:?}: {} ({})",
            letter.event.kind, letter.event.id, letter.error, letter.reason
        );
    }
    assert_eq!(dead.len(), 2);

    // A new version has a handler for the unknown type. Its dead letter is redriven.
    let painted = Filter::default().consumer("assets").kind("asset.painted");
    let report = Redrive::new(&**hapax.store(), &broker).filter(painted).run().await?;
    assert_eq!(report.published, 1);
    let new_version = router(&app).on("asset.painted", |app: App, _cx: Context, event: Event| async move {
        app.assets.lock().insert(event.subject.clone().unwrap_or_default(), "painted".to_owned());
        Ok::<_, String>(())
    });
    assets.run(broker.source(), new_version).until(std::future::pending()).await?;
    let left = list(&**hapax.store(), &Filter::default(), None).await?.dead_letters;
    println!("left: {:?}", left.iter().map(|letter| &*letter.reason).collect::<Vec<_>>());
    assert_eq!(left.len(), 1);
    assert_eq!(app.assets.lock()["saw"], "painted");
    Ok(())
}
