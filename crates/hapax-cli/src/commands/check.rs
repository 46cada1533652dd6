//! `hapax check`: can the store be used, what does it promise, what should somebody look at.

use hapax_core::{Health, Stats};
use serde_json::json;

use super::Context;
use crate::args::Check;
use crate::failure::Failure;
use crate::output::printable;
use crate::stores::{Access, StoreUrl};

pub(crate) async fn run(check: &Check, context: &Context) -> Result<(), Failure> {
    if check.deep {
        context.store.verify().await?;
    }
    let store = context.store.open(Access::Read)?;
    let failed = |error| Failure::store(error, format!("cannot use {}", context.store));
    let health = store.health().await.map_err(failed)?;
    let stats = store.stats().await.map_err(failed)?;
    let warnings = warnings(&context.store, &health, &stats);
    if context.output.json {
        return context.output.document(&document(&context.store, &health, &stats, &warnings));
    }
    context.output.text(&text(&context.store, &health, &stats, &warnings))
}

fn warnings(url: &StoreUrl, health: &Health, stats: &Stats) -> Vec<String> {
    let mut warnings = health.warnings.clone();
    if *url == StoreUrl::Memory {
        warnings.push(
            "memory: starts empty and serves one process only; use file:DIR to keep records".to_owned(),
        );
    }
    if stats.uncertain > 0 {
        warnings.push(format!(
            "{} uncertain record(s) wait for somebody to settle them: hapax records list --state uncertain",
            stats.uncertain
        ));
    }
    warnings
}

fn counts(stats: &Stats) -> [(&'static str, u64); 5] {
    [
        ("in_progress", stats.in_progress),
        ("completed", stats.completed),
        ("failed", stats.failed),
        ("uncertain", stats.uncertain),
        ("released", stats.released),
    ]
}

fn text(url: &StoreUrl, health: &Health, stats: &Stats, warnings: &[String]) -> String {
    let counts: Vec<_> = counts(stats).iter().map(|(state, count)| format!("{state} {count}")).collect();
    let mut lines = vec![
        format!("store    {url} ({})", health.store),
        format!("promise  {}", health.promise.words()),
        format!("records  {} ({})", stats.records(), counts.join(", ")),
        format!("bytes    {}", stats.bytes),
    ];
    lines.extend(warnings.iter().map(|warning| format!("warning  {}", printable(warning))));
    lines.push("ok".to_owned());
    lines.join("\n")
}

fn document(url: &StoreUrl, health: &Health, stats: &Stats, warnings: &[String]) -> serde_json::Value {
    let counts: serde_json::Map<_, _> =
        counts(stats).into_iter().map(|(state, count)| (state.to_owned(), count.into())).collect();
    json!({
        "store": { "url": url.to_string(), "kind": health.store, "bytes": stats.bytes },
        "promise": health.promise.words(),
        "records": stats.records(),
        "states": counts,
        "warnings": warnings,
    })
}
