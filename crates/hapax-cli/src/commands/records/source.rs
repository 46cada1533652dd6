//! Where the commands read and change records: a store that is opened here, or the sidecar that owns it. If the store is
//! in use, its owner is found by the file that it publishes. Both return the same views.

use hapax_admin::LocalAccess;
use hapax_admin::records::Records;
use hapax_admin::view::{Document, PageView, Payload, RecordView};
use hapax_core::{Query, RecordId, StoreErrorKind, Verdict};

use crate::admin_client::AdminClient;
use crate::failure::{Code, Failure};
use crate::output::{note, quoted};
use crate::stores::{Access, StoreUrl};

#[derive(Debug)]
pub(super) enum Source {
    Store { records: Records, place: String },
    Admin(Box<AdminClient>),
}

impl Source {
    pub(super) async fn of_store(url: &StoreUrl, access: Access) -> Result<Self, Failure> {
        match url.open_shared(access).await {
            Ok(store) => {
                let place = url.to_string();
                Ok(Self::Store { records: Records::standalone(store, &place), place })
            }
            Err(failure) if failure.code() == Code::Store(StoreErrorKind::InUse) => {
                Self::of_owner(url, failure).await
            }
            Err(failure) => Err(failure),
        }
    }

    /// The sidecar that owns the store, if it publishes its address; otherwise the reason why the store cannot be opened.
    async fn of_owner(url: &StoreUrl, in_use: Failure) -> Result<Self, Failure> {
        let Some((listener, token)) = url.directory().and_then(LocalAccess::find) else { return Err(in_use) };
        let client = AdminClient::new(&listener, token)?;
        match client.probe().await {
            Ok(()) => {
                note(&format!("{url} is in use; asking its owner at {listener}"));
                Ok(Self::Admin(Box::new(client)))
            }
            Err(failure) => Err(in_use.hint(format!(
                "its owner has an admin listener at {listener}, which cannot be used ({}); \
                 if it is reachable, run: {} --admin {listener}",
                failure.message(),
                own_command_line()
            ))),
        }
    }

    /// Its name in messages.
    pub(super) fn place(&self) -> &str {
        match self {
            Self::Store { place, .. } => place,
            Self::Admin(_) => "the store",
        }
    }

    pub(super) async fn page(&self, query: &Query) -> Result<PageView, Failure> {
        match self {
            Self::Store { records, .. } => records.page(query).await,
            Self::Admin(client) => client.page(query).await,
        }
    }

    pub(super) async fn show(&self, id: &RecordId, payload: Payload) -> Result<Document, Failure> {
        match self {
            Self::Store { records, .. } => records.show(id, payload).await,
            Self::Admin(client) => client.show(id, payload).await,
        }
    }

    /// Settles the record, unless it has changed since it was shown.
    pub(super) async fn settle(
        &self,
        record: &RecordView,
        verdict: Verdict,
        reason: Option<&str>,
    ) -> Result<(), Failure> {
        match self {
            Self::Store { records, .. } => records.settle(&id_of(record)?, &record.version, verdict).await,
            Self::Admin(client) => client.settle(record, verdict, reason).await,
        }
    }

    /// Removes the record, unless it has changed since it was shown.
    pub(super) async fn delete(&self, record: &RecordView, reason: Option<&str>) -> Result<(), Failure> {
        match self {
            Self::Store { records, .. } => records.delete(&id_of(record)?, &record.version).await,
            Self::Admin(client) => client.delete(record, reason).await,
        }
    }
}

/// The command line of this process.
fn own_command_line() -> String {
    let args = std::env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy()));
    std::iter::once("hapax".to_owned()).chain(args).collect::<Vec<_>>().join(" ")
}

/// The id of a view.
pub(super) fn id_of(record: &RecordView) -> Result<RecordId, Failure> {
    RecordId::parse(&record.id)
        .ok_or_else(|| Failure::new(Code::Failed, "a record was returned with an invalid id"))
}
