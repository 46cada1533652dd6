//! Every case of `spec/cases/event`.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use bytes::Bytes;
use hapax::events::cloud_events::{self, Binding};
use hapax::events::{EnvelopeError, Event, EventKey, Headers, Unnamed, event_bridge};
use hapax_testkit::http_suite::{CaseResult, Report, Verdict};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    id: String,
    rule: String,
    kind: Kind,
    #[serde(rename = "about")]
    _about: String,
    message: Message,
    #[serde(default, rename = "event")]
    events: Vec<Expected>,
    refusal: Option<Refusal>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Admits,
    Refuses,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    form: Form,
    #[serde(default)]
    headers: Vec<(String, Content)>,
    #[serde(default)]
    body: Content,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Form {
    Http,
    Nats,
    Kafka,
    Amqp,
    #[serde(rename = "cloudevents-json")]
    Json,
    #[serde(rename = "cloudevents-batch")]
    Batch,
    EventBridge,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Binary { base64: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    kind: String,
    source: Option<String>,
    id: Option<String>,
    subject: Option<String>,
    time: Option<String>,
    content_type: Option<String>,
    order: Option<String>,
    given_key: Option<String>,
    #[serde(default)]
    headers: Vec<(String, Content)>,
    #[serde(default)]
    data: Content,
    key: Option<String>,
}

#[derive(PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Refusal {
    error: String,
    attribute: Option<String>,
    index: Option<usize>,
}

impl Default for Content {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl Content {
    fn bytes(&self) -> Bytes {
        match self {
            Self::Text(text) => text.clone().into(),
            Self::Binary { base64 } => {
                base64::engine::general_purpose::STANDARD.decode(base64).unwrap().into()
            }
        }
    }
}

impl Expected {
    fn event(&self) -> Event {
        let headers: Headers = self.headers.iter().map(|(name, value)| (name, value.bytes())).collect();
        let event = Event::new(&self.kind).data(self.data.bytes()).headers(headers);
        let set: [(&Option<String>, fn(Event, &String) -> Event); 7] = [
            (&self.source, Event::source),
            (&self.id, Event::id),
            (&self.subject, Event::subject),
            (&self.time, Event::time),
            (&self.content_type, Event::content_type),
            (&self.order, Event::order),
            (&self.given_key, Event::key),
        ];
        set.into_iter().fold(event, |event, (value, set)| value.iter().fold(event, set))
    }
}

impl From<&EnvelopeError> for Refusal {
    fn from(error: &EnvelopeError) -> Self {
        let index = match error {
            EnvelopeError::InBatch { index, .. } => Some(*index),
            _ => None,
        };
        Self { error: error.name().to_owned(), attribute: error.attribute().map(str::to_owned), index }
    }
}

impl Form {
    fn binding(self) -> Option<Binding> {
        match self {
            Self::Http => Some(Binding::Http),
            Self::Nats => Some(Binding::Nats),
            Self::Kafka => Some(Binding::Kafka),
            Self::Amqp => Some(Binding::Amqp),
            Self::Json | Self::Batch | Self::EventBridge => None,
        }
    }

    fn read(self, headers: &[(String, Bytes)], body: &Bytes) -> Result<Vec<Event>, EnvelopeError> {
        if let Some(binding) = self.binding() {
            let headers = headers.iter().map(|(name, value)| (&**name, &**value));
            return Ok(binding.read(headers, body.clone())?.into_iter().collect());
        }
        match self {
            Self::Batch => cloud_events::read_batch(body),
            Self::EventBridge => Ok(vec![event_bridge::read(body)?]),
            _ => Ok(vec![cloud_events::read_json(body)?]),
        }
    }

    /// The events after they were written in this form and read again; `None` if the form is not written.
    fn written_and_read(self, events: &[Event]) -> Option<Vec<Event>> {
        if let Some(binding) = self.binding() {
            let read = |event: &Event| {
                let headers = binding.write(event).unwrap();
                binding.read(headers.iter(), event.data.clone()).unwrap().unwrap()
            };
            return Some(events.iter().map(read).collect());
        }
        match self {
            Self::EventBridge => None,
            Self::Batch => {
                Some(cloud_events::read_batch(&cloud_events::write_batch(events).unwrap()).unwrap())
            }
            _ => {
                let read =
                    |event| cloud_events::read_json(&cloud_events::write_json(event).unwrap()).unwrap();
                Some(events.iter().map(read).collect())
            }
        }
    }
}

impl Case {
    /// What differs from the expectation; empty if nothing does.
    fn differences(&self) -> Vec<String> {
        let headers: Vec<(String, Bytes)> =
            self.message.headers.iter().map(|(name, value)| (name.clone(), value.bytes())).collect();
        let read = self.message.form.read(&headers, &self.message.body.bytes());
        if (self.kind == Kind::Refuses) != self.refusal.is_some() {
            return vec!["the kind and the expectation disagree".to_owned()];
        }
        let events = match (read, &self.refusal) {
            (Ok(events), None) => events,
            (Err(error), Some(refusal)) if Refusal::from(&error) == *refusal => return Vec::new(),
            (Err(error), _) => return vec![format!("refused: {error}")],
            (Ok(events), Some(_)) => return vec![format!("read: {events:?}")],
        };
        let mut differences = Vec::new();
        let expected: Vec<Event> = self.events.iter().map(Expected::event).collect();
        if events != expected {
            differences.push(format!("expected {}\n    got      {}", shown(&expected), shown(&events)));
        }
        for (event, expected) in events.iter().zip(&self.events) {
            let key = EventKey::of(event, Unnamed::Refuse).unwrap().key;
            if expected.key.as_ref().is_some_and(|expected| key.as_str() != expected) {
                differences.push(format!("the key is {}", key.as_str()));
            }
        }
        if let Some(again) = self.message.form.written_and_read(&events).filter(|again| *again != events) {
            differences.push(format!("written and read again: {}", shown(&again)));
        }
        differences
    }
}

/// Events with all their properties, which `Debug` hides.
fn shown(events: &[Event]) -> String {
    let shown = |event: &Event| {
        let headers: Vec<(&str, String)> =
            event.headers.iter().map(|(name, value)| (name, value.escape_ascii().to_string())).collect();
        let texts = (
            &event.kind,
            &event.source,
            &event.id,
            &event.subject,
            &event.time,
            &event.content_type,
            &event.order,
        );
        format!("{texts:?} {:?} {headers:?} {:?}", event.key, event.data)
    };
    events.iter().map(shown).collect::<Vec<_>>().join("; ")
}

/// The case files, by path.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let files = |path: PathBuf| if path.is_dir() { files(&path) } else { vec![path] };
    paths
        .into_iter()
        .flat_map(files)
        .filter(|path| path.extension().is_some_and(|kind| kind == "toml"))
        .collect()
}

#[test]
fn v_01_v_13_every_case_is_as_expected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/cases/event");
    let mut failures = Vec::new();
    let mut results = Vec::new();
    for file in files(&folder) {
        let case: Case = toml::from_str(&fs::read_to_string(&file).unwrap())
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert_eq!(file.file_stem().unwrap().to_str(), Some(&*case.id), "the file's name");
        assert!(case.id.starts_with(&case.rule.to_lowercase()), "{}: the rule", case.id);
        let differences = case.differences();
        if !differences.is_empty() {
            failures.push(format!("{}\n    {}", case.id, differences.join("\n    ")));
        }
        results.push(CaseResult { rule: case.rule, id: case.id, verdict: Verdict::Passed });
    }
    assert!(failures.is_empty(), "{} of {} cases\n{}", failures.len(), results.len(), failures.join("\n"));
    Report { surface: "events".to_owned(), results }.assert_passed();
}
