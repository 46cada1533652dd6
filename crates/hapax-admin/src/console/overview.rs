//! The overview: the metrics of this process and the counts of the store.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::extract::State;
use axum::response::Response;

use super::chart::{Chart, Kind, Series};
use super::{formatting, render};
use crate::api::stats;
use crate::api::status::StatsDocument;
use crate::listener::Shared;
use crate::samples::{Samples, Step};
use crate::time::brief;

#[derive(Template)]
#[template(path = "console/overview.html")]
struct Overview {
    live: String,
}

impl Overview {
    fn here(&self) -> &'static str {
        "/"
    }
}

#[derive(Template)]
#[template(path = "console/live.html")]
struct Live {
    tiles: Vec<Tile>,
    charts: Vec<Chart>,
    stats: Option<StatsDocument>,
    problem: Option<String>,
    uptime: String,
    size: String,
}

struct Tile {
    name: &'static str,
    number: String,
    link: &'static str,
    is_warning: bool,
}

/// The bands of the chart of requests: name, colour and outcomes.
const BANDS: [(&str, &str, &[&str]); 7] = [
    ("ran", "c1", &["ran"]),
    ("replayed", "c2", &["replayed"]),
    ("conflict", "c3", &["in_progress"]),
    ("mismatch", "c6", &["mismatch"]),
    ("uncertain", "c4", &["uncertain"]),
    (
        "failed or refused",
        "c5",
        &["failed", "refused", "store_error", "unreachable", "deadline", "unrecorded", "unprotected"],
    ),
    ("passed", "c7", &["passed"]),
];

pub(super) async fn page(State(shared): State<Arc<Shared>>) -> Response {
    let live = now(&shared).await.render().unwrap_or_default();
    render(&Overview { live })
}

/// The part of the page that is refreshed.
pub(super) async fn live(State(shared): State<Arc<Shared>>) -> Response {
    render(&now(&shared).await)
}

async fn now(shared: &Shared) -> Live {
    let charts = charts(&shared.samples.steps());
    match stats(shared).await {
        Ok(stats) => Live {
            tiles: tiles(&stats),
            charts,
            uptime: brief(Duration::from_millis(stats.uptime_ms)),
            size: formatting::bytes(stats.records.bytes),
            stats: Some(stats),
            problem: None,
        },
        Err(failure) => {
            let problem = Some(formatting::sentence(failure.message()));
            let (uptime, size) = (String::new(), String::new());
            Live { tiles: Vec::new(), charts, stats: None, problem, uptime, size }
        }
    }
}

fn tiles(stats: &StatsDocument) -> Vec<Tile> {
    let records = &stats.records;
    [
        ("uncertain", records.uncertain, "/records?state=uncertain", records.uncertain > 0),
        ("in progress", records.in_progress, "/records?state=in_progress", false),
        ("completed", records.completed, "/records?state=completed", false),
        ("failed", records.failed, "/records?state=failed", false),
        ("released", records.released, "/records?state=released", false),
    ]
    .map(|(name, number, link, is_warning)| Tile {
        name,
        number: formatting::count(number),
        link,
        is_warning,
    })
    .into()
}

fn charts(steps: &[Step]) -> Vec<Chart> {
    let chart = |title, kind, series, top_min, words| {
        Chart::new(title, kind, series, Samples::steps_max(), top_min, words)
    };
    let whole = |number: f64| formatting::count(number.max(0.0) as u64);
    let series = |name, colour, value: &dyn Fn(&Step) -> Option<f64>| Series {
        name,
        colour,
        values: steps.iter().map(value).collect(),
    };
    let bands = BANDS.map(|(name, colour, outcomes)| {
        series(name, colour, &|step| {
            Some(outcomes.iter().filter_map(|outcome| step.rates.get(*outcome)).sum())
        })
    });
    vec![
        chart("Requests", Kind::Stacked, bands.into(), 1.0, formatting::rate),
        chart(
            "Latency, p99",
            Kind::Lines,
            vec![series("request", "c2", &|step| step.answered_p99)],
            0.001,
            formatting::seconds,
        ),
        chart(
            "Store latency, p99",
            Kind::Lines,
            vec![
                series("claim", "c1", &|step| step.claim_p99),
                series("record", "c3", &|step| step.complete_p99),
            ],
            0.001,
            formatting::seconds,
        ),
        chart(
            "In progress",
            Kind::Lines,
            vec![series("runs", "c1", &|step| Some(step.in_progress))],
            4.0,
            whole,
        ),
        chart(
            "Uncertain",
            Kind::Lines,
            vec![series("records", "c4", &|step| Some(step.uncertain))],
            4.0,
            whole,
        ),
    ]
}
