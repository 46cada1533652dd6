//! `hapax records`: lists and shows records and settles uncertain ones, in a store or through a running sidecar.

mod delete;
mod find;
mod list;
mod settle;
mod show;
mod source;

use std::time::Duration;

use hapax::{Hapax, Keeper, MemoryStore};
use hapax_admin::view::{Document, or_dash};
use hapax_admin::{LocalAccess, TOKEN_VARIABLE, Token};

use super::Context;
use crate::admin_client::AdminClient;
use crate::args::{AdminAccess, Records, RecordsCommand};
use crate::config::{Config, Flags};
use crate::failure::{Code, Failure};
use crate::output::{Output, note, quoted};
use crate::retention::retention_of;
use crate::stores::Access;
use source::Source;

pub(crate) async fn run(records: &Records, context: &Context, flags: &Flags) -> Result<(), Failure> {
    let target = Target { context, admin: &records.admin, flags };
    match &records.command {
        RecordsCommand::List(list) => list::run(list, &target).await,
        RecordsCommand::Show(show) => show::run(show, &target).await,
        RecordsCommand::Settle(settle) => settle::run(settle, &target).await,
        RecordsCommand::Release(change) => settle::release(change, &target).await,
        RecordsCommand::Delete(change) => delete::run(change, &target).await,
    }
}

/// The store or sidecar that a command works on.
struct Target<'a> {
    context: &'a Context,
    admin: &'a AdminAccess,
    flags: &'a Flags,
}

impl Target<'_> {
    fn output(&self) -> Output {
        self.context.output
    }

    /// Opens the store, or connects to the sidecar that owns it.
    async fn open(&self, access: Access) -> Result<Source, Failure> {
        let Some(url) = &self.admin.admin else {
            return Source::of_store(&self.context.store, access).await;
        };
        Ok(Source::Admin(Box::new(AdminClient::new(url, self.token()?)?)))
    }

    /// The token of the sidecar, read from where the sidecar itself reads it. There is no flag for the token: arguments
    /// are visible in the shell's history and in process listings.
    fn token(&self) -> Result<Token, Failure> {
        let found = match (&self.admin.admin_token_file, std::env::var_os(TOKEN_VARIABLE)) {
            (Some(file), _) => Some(Token::read(file)?),
            (None, Some(token)) => Some(Token::from_variable(&token)?),
            (None, None) => Config::load(self.flags, std::env::vars_os())?.admin.configured_token()?,
        };
        found.ok_or_else(|| {
            Failure::new(Code::TokenInvalid, "no token for the sidecar")
                .hint("set HAPAX_ADMIN_TOKEN, or name its file with --admin-token-file")
        })
    }

    /// Opens it for a change. A reason is only recorded in the audit log of a sidecar.
    async fn open_to_change(&self, reason: Option<&str>) -> Result<Source, Failure> {
        let not_recorded = || {
            Failure::new(Code::InputInvalid, "the reason would not be recorded").hint(
                "--reason is recorded in the audit log of a running sidecar: name it with --admin URL, \
                 or leave --reason out",
            )
        };
        let owner_listens =
            || self.context.store.directory().is_some_and(|store| LocalAccess::find(store).is_some());
        if reason.is_some() && self.admin.admin.is_none() && !owner_listens() {
            return Err(not_recorded());
        }
        match self.open(Access::Write).await? {
            // The owner has ended without removing its file.
            Source::Store { .. } if reason.is_some() => Err(not_recorded()),
            source => Ok(source),
        }
    }

    /// A follow-up command for the same records.
    fn command_line(&self, rest: &str) -> String {
        let mut line = format!("hapax {rest}{}", self.flags.store_flags());
        if let Some(url) = &self.admin.admin {
            line += &format!(" --admin {}", quoted(url));
        }
        if let Some(file) = &self.admin.admin_token_file {
            line += &format!(" --admin-token-file {}", quoted(&file.display().to_string()));
        }
        line
    }

    /// The retention of the result that settles the record. A sidecar reports it with the record; for a store that is
    /// opened here, the configuration says it.
    fn retention_of(&self, found: &Document) -> Result<Duration, Failure> {
        if let Some(retention) = found.settle_retention() {
            return Ok(retention);
        }
        let config = Config::load(self.flags, std::env::vars_os())?;
        let hapax = Hapax::builder(MemoryStore::new()).sweep(None).keeper(Keeper::SharedRuntime).build();
        let layer = config.layer(&hapax, |route| route.policy.clone());
        Ok(retention_of(&found.record.scope.operation, &layer, &config.routes))
    }
}

/// Prints to stderr which record is about to change, and how.
fn announce(found: &Document, what: &str) {
    let record = &found.record;
    note(&format!(
        "record {}\n  {}, attempt {}, operation {}\n  {what}",
        record.id,
        record.state_words(),
        record.attempt,
        or_dash(&record.scope.operation),
    ));
}

#[cfg(test)]
mod tests;
