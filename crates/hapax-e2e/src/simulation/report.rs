//! [`PlayResult`]: the result of one play, with its timeline.

use std::fmt::Write;
use std::pin::Pin;

use super::event::{CallResult, FaultKind, TraceEntry};
use super::oracle::{self, Violation};
use super::quiet::without_panic_output;
use super::world::{Settings, World};

/// The result of one play.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlayResult {
    /// Broken rules.
    pub violations: Vec<Violation>,
    /// How many faults were injected, by kind.
    pub fired: [u64; FaultKind::ALL.len()],
    /// The results of calls before the healing, in words.
    pub answers: String,
    /// The trace.
    pub entries: Vec<TraceEntry>,
}

/// A scenario being played.
pub type Play<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Plays `act` in a new world on its own simulated time, heals the world and checks the trace. Also returns the result of
/// `act`.
pub fn play<T>(settings: Settings, act: impl AsyncFnOnce(&mut World) -> T) -> (PlayResult, T) {
    without_panic_output(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without I/O needs nothing");
        runtime.block_on(async {
            let mut world = World::new(settings);
            let seen = act(&mut world).await;
            let answers = answer_words(&world.traced.answers());
            world.heal().await;
            let entries = world.traced.entries();
            let mut violations = oracle::check_trace(&entries, settings.terms());
            violations.append(&mut world.violations);
            (PlayResult { violations, fired: world.traced.fired(), answers, entries }, seen)
        })
    })
}

fn answer_words(answers: &[Option<CallResult>]) -> String {
    let words: Vec<&str> = answers.iter().map(|answer| answer.map_or("none", CallResult::words)).collect();
    words.join(", ")
}

impl PlayResult {
    /// Whether one of these rules was broken.
    pub fn breaks(&self, rules: &[String]) -> bool {
        self.violations.iter().any(|violation| rules.iter().any(|rule| rule == violation.id()))
    }

    /// The trace, with each violation after its event.
    pub fn timeline(&self) -> String {
        let mut timeline = String::new();
        for (index, entry) in self.entries.iter().enumerate() {
            let _ = writeln!(timeline, "{entry}");
            for violation in self.violations.iter().filter(|violation| violation.entry == index) {
                let _ = writeln!(timeline, "    WRONG  {violation}");
            }
        }
        for violation in self.violations.iter().filter(|violation| violation.entry >= self.entries.len()) {
            let _ = writeln!(timeline, "    WRONG  {violation}");
        }
        timeline
    }
}
