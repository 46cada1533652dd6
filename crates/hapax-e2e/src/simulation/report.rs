//! What came of one play, and the story to tell when something is wrong with it.

use std::fmt::Write;
use std::pin::Pin;

use super::event::{Answer, Entry, Kind};
use super::oracle::{self, Violation};
use super::quiet::quietly;
use super::world::{Settings, World};

/// What came of one play.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Played {
    /// What may not have happened.
    pub violations: Vec<Violation>,
    /// How many faults struck, by kind.
    pub fired: [u64; Kind::ALL.len()],
    /// What callers were told before the healing, in words.
    pub told: String,
    /// Everything that happened.
    pub entries: Vec<Entry>,
}

/// A scenario being played.
pub type Act<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Plays `act` in a new world on its own simulated time, heals the world and judges what happened. Also gives
/// what `act` gave.
pub fn play<T>(settings: Settings, act: impl AsyncFnOnce(&mut World) -> T) -> (Played, T) {
    quietly(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without I/O needs nothing");
        runtime.block_on(async {
            let mut world = World::new(settings);
            let seen = act(&mut world).await;
            let told = told(&world.ground.answers());
            world.heal().await;
            let entries = world.ground.entries();
            let mut violations = oracle::judge(&entries, settings.terms());
            violations.append(&mut world.violations);
            (Played { violations, fired: world.ground.fired(), told, entries }, seen)
        })
    })
}

fn told(answers: &[Option<Answer>]) -> String {
    let words: Vec<&str> = answers.iter().map(|answer| answer.map_or("none", Answer::words)).collect();
    words.join(", ")
}

impl Played {
    /// Whether one of these rules was broken.
    pub fn breaks(&self, rules: &[String]) -> bool {
        self.violations.iter().any(|violation| rules.iter().any(|rule| rule == violation.id()))
    }

    /// Everything that happened, with what is wrong about it at its place.
    pub fn story(&self) -> String {
        let mut story = String::new();
        for (index, entry) in self.entries.iter().enumerate() {
            let _ = writeln!(story, "{entry}");
            for violation in self.violations.iter().filter(|violation| violation.entry == index) {
                let _ = writeln!(story, "    WRONG  {violation}");
            }
        }
        for violation in self.violations.iter().filter(|violation| violation.entry >= self.entries.len()) {
            let _ = writeln!(story, "    WRONG  {violation}");
        }
        story
    }
}
