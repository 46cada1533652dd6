//! Order: events with the same ordering key are processed one after the other, in the order of their delivery (V-10).

use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The ordering keys of the events in hand. Each has a lane, which exists as long as it has events.
#[derive(Debug, Default)]
pub(super) struct Lanes(Mutex<LaneMap>);

#[derive(Debug, Default)]
struct LaneMap {
    by_order: HashMap<String, Last>,
    entered: u64,
}

/// The event that entered a lane last.
#[derive(Debug)]
struct Last {
    number: u64,
    ended: oneshot::Receiver<TurnEnd>,
}

/// How an event left its lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TurnEnd {
    /// It is processed, or a dead letter: the next one may run.
    Concluded,
    /// It comes again, so the ones behind it must come again after it.
    GivenBack,
}

/// The place of one event in its lane. Dropped without [`end`](Self::end), the event counts as given back.
#[derive(Debug)]
pub(super) struct Turn {
    lanes: Arc<Lanes>,
    order: String,
    number: u64,
    before: Option<oneshot::Receiver<TurnEnd>>,
    end: Option<oneshot::Sender<TurnEnd>>,
}

impl Lanes {
    /// Puts an event at the end of its lane. The order of these calls is the order of processing.
    pub(super) fn enter(self: &Arc<Self>, order: &str) -> Turn {
        let (end, ended) = oneshot::channel();
        let mut map = self.0.lock();
        map.entered += 1;
        let number = map.entered;
        let before = map.by_order.insert(order.to_owned(), Last { number, ended });
        let before = before.map(|last| last.ended);
        Turn { lanes: self.clone(), order: order.to_owned(), number, before, end: Some(end) }
    }
}

impl Turn {
    /// Waits for the event in front. *Dropped*: waits again from the start.
    pub(super) async fn come(&mut self) -> TurnEnd {
        let Some(before) = &mut self.before else { return TurnEnd::Concluded };
        let end = before.await.unwrap_or(TurnEnd::GivenBack);
        self.before = None;
        end
    }

    /// Leaves the lane.
    pub(super) fn end(mut self, end: TurnEnd) {
        self.leave(end);
    }

    fn leave(&mut self, end: TurnEnd) {
        let Some(sender) = self.end.take() else { return };
        let mut map = self.lanes.0.lock();
        if map.by_order.get(&self.order).is_some_and(|last| last.number == self.number) {
            map.by_order.remove(&self.order);
        }
        // The one behind may be gone.
        let _ = sender.send(end);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.leave(TurnEnd::GivenBack);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn ready(turn: &mut Turn) -> Option<TurnEnd> {
        turn.come().now_or_never()
    }

    #[test]
    fn v_10_the_next_event_of_a_lane_waits_and_others_do_not() {
        let lanes = Arc::new(Lanes::default());
        let [mut first, mut second, mut other] = ["a", "a", "b"].map(|order| lanes.enter(order));
        assert_eq!(ready(&mut first), Some(TurnEnd::Concluded));
        assert_eq!(ready(&mut other), Some(TurnEnd::Concluded));
        assert_eq!(ready(&mut second), None);
        first.end(TurnEnd::Concluded);
        assert_eq!(ready(&mut second), Some(TurnEnd::Concluded));
        assert_eq!(ready(&mut second), Some(TurnEnd::Concluded), "also when it is asked again");
    }

    #[test]
    fn v_10_what_is_behind_an_event_that_comes_again_comes_again() {
        let lanes = Arc::new(Lanes::default());
        let [first, mut second, mut third] = ["a", "a", "a"].map(|order| lanes.enter(order));
        drop(first);
        assert_eq!(ready(&mut second), Some(TurnEnd::GivenBack));
        second.end(TurnEnd::GivenBack);
        assert_eq!(ready(&mut third), Some(TurnEnd::GivenBack));
    }

    #[test]
    fn a_lane_without_events_is_removed() {
        let lanes = Arc::new(Lanes::default());
        let [first, second] = ["a", "a"].map(|order| lanes.enter(order));
        first.end(TurnEnd::Concluded);
        assert_eq!(lanes.0.lock().by_order.len(), 1);
        second.end(TurnEnd::Concluded);
        assert_eq!(lanes.0.lock().by_order.len(), 0);
        assert_eq!(ready(&mut lanes.enter("a")), Some(TurnEnd::Concluded));
    }
}
