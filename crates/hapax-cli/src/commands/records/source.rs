//! Whom the commands ask: a store that is opened here, or a sidecar that has it open. Both answer with the same
//! views, so nothing else can tell them apart.

use hapax_core::{Query, RecordId, Verdict};

use crate::admin::Client;
use crate::failure::{Code, Failure};
use crate::records::Desk;
use crate::stores::{Access, StoreUrl};
use crate::view::{Document, PageView, Payload, RecordView};

#[derive(Debug)]
pub(super) enum Source {
    Store { desk: Desk, place: String },
    Admin(Client),
}

impl Source {
    pub(super) async fn of_store(url: &StoreUrl, access: Access) -> Result<Self, Failure> {
        let (store, place) = (url.open_shared(access).await?, url.to_string());
        Ok(Self::Store { desk: Desk::on(store, &place), place })
    }

    /// What to call it in messages.
    pub(super) fn place(&self) -> &str {
        match self {
            Self::Store { place, .. } => place,
            Self::Admin(_) => "the store",
        }
    }

    pub(super) async fn page(&self, query: &Query) -> Result<PageView, Failure> {
        match self {
            Self::Store { desk, .. } => desk.page(query).await,
            Self::Admin(client) => client.page(query).await,
        }
    }

    pub(super) async fn show(&self, id: &RecordId, payload: Payload) -> Result<Document, Failure> {
        match self {
            Self::Store { desk, .. } => desk.show(id, payload).await,
            Self::Admin(client) => client.show(id, payload).await,
        }
    }

    /// Decides the record that was looked at.
    pub(super) async fn settle(
        &self,
        record: &RecordView,
        verdict: Verdict,
        reason: Option<&str>,
    ) -> Result<(), Failure> {
        match self {
            Self::Store { desk, .. } => desk.settle(&id_of(record)?, &record.version, verdict).await,
            Self::Admin(client) => client.settle(record, verdict, reason).await,
        }
    }

    /// Removes the record that was looked at.
    pub(super) async fn delete(&self, record: &RecordView, reason: Option<&str>) -> Result<(), Failure> {
        match self {
            Self::Store { desk, .. } => desk.delete(&id_of(record)?, &record.version).await,
            Self::Admin(client) => client.delete(record, reason).await,
        }
    }
}

/// The id of a record that was shown.
pub(super) fn id_of(record: &RecordView) -> Result<RecordId, Failure> {
    RecordId::parse(&record.id)
        .ok_or_else(|| Failure::new(Code::Failed, "a record was shown under what is no id"))
}
