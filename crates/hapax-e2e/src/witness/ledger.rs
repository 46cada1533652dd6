//! What the service did, by key: its own account, which no answer of the sidecar can change.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::http_rounds::client::Told;

/// The fields of the service's answers that a replay must keep.
const KEPT: [&str; 3] = ["content-type", "location", "x-order"];

/// One of so many keys is refused the first time, as by a service that is busy: nothing happens, and it may come again.
const BUSY_EVERY: u64 = 16;
/// One of so many keys is answered with an error that is final.
const WRONG_EVERY: u64 = 7;
/// The key that lies are about. It is neither refused nor wrong.
const LIED_ABOUT: u64 = 9;

/// What the service does wrong, so that it can be seen that the proof notices.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Lie {
    /// One operation happens twice.
    Doubled,
    /// The account of one answer is another than the one that was given.
    Falsified,
    /// The account of one operation is gone.
    Forgotten,
    /// One operation never ends.
    Endless,
}

/// An answer as far as it must be the same every time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) fields: [String; KEPT.len()],
    pub(crate) body: String,
}

impl Answer {
    fn new(key: u64, effect: u64) -> Self {
        let status = if key.is_multiple_of(WRONG_EVERY) { 404 } else { 201 };
        let fields = ["application/json".to_owned(), format!("/orders/{key}"), format!("{key}-{effect}")];
        Self { status, fields, body: format!("{{ \"order\":{key},  \"effect\":{effect} }}") }
    }

    /// The fields that must be kept, with their names.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&'static str, &str)> {
        KEPT.into_iter().zip(self.fields.iter().map(String::as_str))
    }
}

impl From<&Told> for Answer {
    fn from(told: &Told) -> Self {
        let fields = KEPT.map(|name| told.field(name).unwrap_or_default().to_owned());
        Self { status: told.status, fields, body: String::from_utf8_lossy(&told.body).into_owned() }
    }
}

/// What happened to one key.
#[derive(Clone, Default, Debug)]
pub(crate) struct Entry {
    /// How often the operation happened.
    pub(crate) effects: u64,
    /// What was answered, each time something was.
    pub(crate) answers: Vec<Answer>,
    refusals: u64,
}

/// The account of all keys.
#[derive(Debug)]
pub(crate) struct Ledger {
    entries: Mutex<HashMap<u64, Entry>>,
    lie: Option<Lie>,
}

impl Ledger {
    pub(crate) fn new(lie: Option<Lie>) -> Self {
        Self { entries: Mutex::default(), lie }
    }

    /// Whether the operation is refused this time, before anything happens.
    pub(crate) fn refuses(&self, key: u64) -> bool {
        let mut entries = self.entries.lock();
        let entry = entries.entry(key).or_default();
        let refuses = key.is_multiple_of(BUSY_EVERY) && entry.refusals == 0;
        entry.refusals += u64::from(refuses);
        refuses
    }

    /// The operation happens. Gives which time it is.
    pub(crate) fn happens(&self, key: u64) -> u64 {
        let mut entries = self.entries.lock();
        let entry = entries.entry(key).or_default();
        entry.effects += if self.lies(Lie::Doubled, key) { 2 } else { 1 };
        entry.effects
    }

    /// The operation is answered.
    pub(crate) fn answers(&self, key: u64, effect: u64) -> Answer {
        let answer = Answer::new(key, effect);
        self.entries.lock().entry(key).or_default().answers.push(answer.clone());
        answer
    }

    /// Whether the operation never ends.
    pub(crate) fn is_endless(&self, key: u64) -> bool {
        self.lies(Lie::Endless, key)
    }

    /// What happened to a key.
    pub(crate) fn entry(&self, key: u64) -> Entry {
        self.entries.lock().get(&key).cloned().unwrap_or_default()
    }

    /// Changes the account behind everybody's back, if that is the lie.
    pub(crate) fn falsify(&self) {
        let mut entries = self.entries.lock();
        match self.lie {
            Some(Lie::Falsified) => {
                entries.entry(LIED_ABOUT).or_default().answers = vec![Answer::new(LIED_ABOUT, u64::MAX)];
            }
            Some(Lie::Forgotten) => {
                entries.remove(&LIED_ABOUT);
            }
            Some(Lie::Doubled | Lie::Endless) | None => {}
        }
    }

    /// The keys whose operation happened more than once.
    pub(crate) fn doubles(&self) -> Vec<String> {
        let entries = self.entries.lock();
        let doubles = entries.iter().filter(|(_, entry)| entry.effects > 1);
        doubles.map(|(key, entry)| format!("key {key} happened {} times", entry.effects)).collect()
    }

    fn lies(&self, lie: Lie, key: u64) -> bool {
        self.lie == Some(lie) && key == LIED_ABOUT
    }
}
