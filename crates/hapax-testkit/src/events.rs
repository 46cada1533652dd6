//! A broker in memory, and a source that delivers everything twice: to test consumers of events without a server.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
//! use hapax::events::{Consumer, Event, Router};
//! use hapax::{Context, Hapax, Keeper, MemoryStore};
//! use hapax_testkit::TokioClock;
//! use hapax_testkit::events::{Duplicator, MemoryBroker};
//!
//! let store = MemoryStore::with_clock(TokioClock::new());
//! let hapax = Hapax::builder(store).keeper(Keeper::SharedRuntime).build();
//! let (ran, runs) = tokio::sync::mpsc::unbounded_channel();
//! let router = Router::new(ran).on("order.paid", |ran: tokio::sync::mpsc::UnboundedSender<String>, _cx: Context, event: Event| async move {
//!     ran.send(event.id.clone().unwrap_or_default()).map_err(|error| error.to_string())
//! });
//!
//! let broker = MemoryBroker::new();
//! for id in 0..100 {
//!     broker.send(Event::new("order.paid").id(id.to_string()));
//! }
//! broker.close();
//! let source = Duplicator::new(broker.source(), 7);
//! Consumer::new(&hapax, "billing").run(source, router).until(std::future::pending()).await?;
//!
//! assert_eq!(runs.len(), 100, "each event ran once, although it was delivered twice");
//! assert_eq!((broker.waiting(), broker.in_flight()), (0, 0));
//! # Ok::<(), hapax::events::RunError>(())
//! # }).unwrap();
//! ```

mod broker;
mod delivery;
mod duplicator;

pub use broker::{BrokerCall, BrokerFault, MemoryBroker, MemorySource};
pub use delivery::MemoryDelivery;
pub use duplicator::{Copied, Duplicator};
