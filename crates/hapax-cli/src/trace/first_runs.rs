//! [`FirstRuns`]: the spans in which the latest operations ran, so that the spans of replays can link to them.
//!
//! They are kept in the memory of this process. A replay of an operation of another process, or an old one, has no link,
//! but its span names the same record.

use std::collections::{HashMap, VecDeque};

use hapax_core::RecordId;
use opentelemetry::trace::SpanContext;
use parking_lot::Mutex;

#[derive(Debug)]
pub(super) struct FirstRuns {
    records_max: usize,
    spans: Mutex<Spans>,
}

#[derive(Debug, Default)]
struct Spans {
    by_record: HashMap<RecordId, SpanContext>,
    /// The oldest first.
    order: VecDeque<RecordId>,
}

impl FirstRuns {
    pub(super) fn new(records_max: usize) -> Self {
        Self { records_max, spans: Mutex::default() }
    }

    /// Records that the operation runs in this span. A later attempt replaces an earlier one.
    pub(super) fn ran(&self, record: RecordId, span: SpanContext) {
        if self.records_max == 0 {
            return;
        }
        let mut spans = self.spans.lock();
        if spans.by_record.insert(record, span).is_some() {
            return;
        }
        spans.order.push_back(record);
        if spans.order.len() > self.records_max
            && let Some(oldest) = spans.order.pop_front()
        {
            spans.by_record.remove(&oldest);
        }
    }

    pub(super) fn of(&self, record: &RecordId) -> Option<SpanContext> {
        self.spans.lock().by_record.get(record).cloned()
    }
}
