//! [`Firsts`]: the spans in which the latest operations ran, so that the spans of replays can link to them.
//!
//! They are kept in the memory of this process. A replay of an operation of another process, or an old one, has no link,
//! but its span names the same record.

use std::collections::{HashMap, VecDeque};

use hapax_core::RecordId;
use opentelemetry::trace::SpanContext;
use parking_lot::Mutex;

#[derive(Debug)]
pub(super) struct Firsts {
    records_max: usize,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    spans: HashMap<RecordId, SpanContext>,
    /// The oldest first.
    order: VecDeque<RecordId>,
}

impl Firsts {
    pub(super) fn new(records_max: usize) -> Self {
        Self { records_max, known: Mutex::default() }
    }

    /// Records that the operation runs in this span. A later attempt replaces an earlier one.
    pub(super) fn ran(&self, record: RecordId, span: SpanContext) {
        if self.records_max == 0 {
            return;
        }
        let mut known = self.known.lock();
        if known.spans.insert(record, span).is_some() {
            return;
        }
        known.order.push_back(record);
        if known.order.len() > self.records_max
            && let Some(oldest) = known.order.pop_front()
        {
            known.spans.remove(&oldest);
        }
    }

    pub(super) fn of(&self, record: &RecordId) -> Option<SpanContext> {
        self.known.lock().spans.get(record).cloned()
    }
}
