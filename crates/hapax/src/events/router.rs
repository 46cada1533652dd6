//! [`Router`]: chooses the handler by the event's type.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use hapax_core::BoxFuture;

use super::event::Event;
use super::from_event::Undecodable;
use super::handler::{Handler, HandlerOutcome};
use crate::engine::Context;

type Erased<S> = Arc<dyn Fn(S, Context, Event) -> BoxFuture<'static, HandlerOutcome> + Send + Sync>;

/// Handlers by event type, and the state that they share. Cheap to clone if the state is.
///
/// An event of another type is an error and never skipped (V-08), unless [`otherwise`](Self::otherwise) names a handler
/// for it.
///
/// ```
/// use hapax::events::{Data, Event, Router};
/// use hapax::{Context, Fail};
///
/// #[derive(serde::Deserialize)]
/// struct Paid {
///     order: String,
///     cents: u64,
/// }
///
/// async fn paid(ledger: Ledger, cx: Context, Data(paid): Data<Paid>) -> Result<(), Fail<LedgerError>> {
///     if paid.cents == 0 {
///         return Err(Fail::permanent(LedgerError::NoAmount));
///     }
///     // A plain error is tried again.
///     ledger.book(&paid.order, paid.cents, cx.effect_key("book")).await?;
///     Ok(())
/// }
///
/// let router = Router::new(Ledger::default())
///     .on("order.paid", paid)
///     .otherwise(|_ledger, _cx, event: Event| async move { Err::<(), _>(format!("{} is not handled yet", event.kind)) });
/// # let _ = router;
/// # #[derive(Clone, Default)]
/// # struct Ledger;
/// # #[derive(Debug)]
/// # enum LedgerError { NoAmount }
/// # impl std::fmt::Display for LedgerError {
/// #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str("no amount") }
/// # }
/// # impl Ledger {
/// #     async fn book(&self, _order: &str, _cents: u64, _key: hapax::Key) -> Result<(), LedgerError> { Ok(()) }
/// # }
/// ```
#[derive(Clone)]
pub struct Router<S> {
    state: S,
    handlers: HashMap<String, Erased<S>>,
    otherwise: Option<Erased<S>>,
}

impl<S: Clone + Send + Sync + 'static> Router<S> {
    /// A router without handlers. Each run of a handler gets a clone of the state.
    #[must_use]
    pub fn new(state: S) -> Self {
        Self { state, handlers: HashMap::new(), otherwise: None }
    }

    /// Events of this type are processed by `handler`.
    ///
    /// # Panics
    /// If the type has a handler already: one of them would never run.
    #[must_use]
    pub fn on<Args: 'static>(mut self, kind: impl Into<String>, handler: impl Handler<S, Args>) -> Self {
        let kind = kind.into();
        let replaced = self.handlers.insert(kind.clone(), erase(handler)).is_some();
        assert!(!replaced, "events of the type {kind:?} have two handlers");
        self
    }

    /// Events of every other type are processed by `handler`.
    ///
    /// # Panics
    /// If there is such a handler already.
    #[must_use]
    pub fn otherwise<Args: 'static>(mut self, handler: impl Handler<S, Args>) -> Self {
        assert!(self.otherwise.is_none(), "events of other types have two handlers");
        self.otherwise = Some(erase(handler));
        self
    }

    /// Processes an event by the handler of its type. Called inside of an attempt, whose context the handler gets.
    pub fn call(&self, context: Context, event: Event) -> BoxFuture<'static, HandlerOutcome> {
        if let Some(why) = event.why_unreadable() {
            return Box::pin(std::future::ready(Undecodable::new(why).into()));
        }
        match self.handlers.get(&event.kind).or(self.otherwise.as_ref()) {
            Some(handler) => handler(self.state.clone(), context, event),
            None => Box::pin(std::future::ready(HandlerOutcome::unknown_type(&event.kind))),
        }
    }
}

fn erase<S: 'static, Args: 'static>(handler: impl Handler<S, Args>) -> Erased<S> {
    Arc::new(move |state, context, event| handler.call(state, context, event))
}

impl<S> fmt::Debug for Router<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut kinds: Vec<&String> = self.handlers.keys().collect();
        kinds.sort();
        f.debug_struct("Router")
            .field("kinds", &kinds)
            .field("otherwise", &self.otherwise.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
