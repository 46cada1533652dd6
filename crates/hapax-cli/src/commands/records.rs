//! `hapax records`: look at records and decide the uncertain ones, in a store or at a running sidecar.

mod delete;
mod find;
mod list;
mod settle;
mod show;
mod source;

use std::time::Duration;

use hapax::{Hapax, Keeper, MemoryStore};

use super::Context;
use crate::admin::{Client, LocalAccess, Token, token};
use crate::args::{AdminAccess, Records, RecordsCommand};
use crate::config::{Config, Flags};
use crate::failure::{Code, Failure};
use crate::output::{Output, note, quoted};
use crate::records::retention::retention_of;
use crate::stores::Access;
use crate::view::{Document, or_dash};
use source::Source;

pub(crate) async fn run(records: &Records, context: &Context, flags: &Flags) -> Result<(), Failure> {
    let place = Place { context, admin: &records.admin, flags };
    match &records.command {
        RecordsCommand::List(list) => list::run(list, &place).await,
        RecordsCommand::Show(show) => show::run(show, &place).await,
        RecordsCommand::Settle(settle) => settle::run(settle, &place).await,
        RecordsCommand::Release(change) => settle::release(change, &place).await,
        RecordsCommand::Delete(change) => delete::run(change, &place).await,
    }
}

/// Where the records are.
struct Place<'a> {
    context: &'a Context,
    admin: &'a AdminAccess,
    flags: &'a Flags,
}

impl Place<'_> {
    fn output(&self) -> Output {
        self.context.output
    }

    /// The store, or the sidecar that has it open.
    async fn open(&self, access: Access) -> Result<Source, Failure> {
        let Some(url) = &self.admin.admin else {
            return Source::of_store(&self.context.store, access).await;
        };
        Ok(Source::Admin(Client::new(url, self.token()?)?))
    }

    /// The token of the sidecar, found where the sidecar itself would find it. There is no flag for the token: what is
    /// typed is in the shell's history and in every list of processes.
    fn token(&self) -> Result<Token, Failure> {
        let found = match (&self.admin.admin_token_file, std::env::var_os(token::VARIABLE)) {
            (Some(file), _) => Some(Token::read(file)?),
            (None, Some(token)) => Some(Token::of_variable(&token)?),
            (None, None) => Config::load(self.flags, std::env::vars_os())?.admin.chosen_token()?,
        };
        found.ok_or_else(|| {
            Failure::new(Code::TokenInvalid, "there is no token for the sidecar")
                .hint("set HAPAX_ADMIN_TOKEN, or name its file with --admin-token-file")
        })
    }

    /// Opens it to change something. A reason is kept only where there is an audit log.
    async fn open_to_change(&self, reason: Option<&str>) -> Result<Source, Failure> {
        let not_kept = || {
            Failure::new(Code::InputInvalid, "this reason would not be kept").hint(
                "--reason goes into the audit log of a running sidecar: name it with --admin URL, \
                 or leave the reason out",
            )
        };
        let owner_listens =
            || self.context.store.directory().is_some_and(|store| LocalAccess::find(store).is_some());
        if reason.is_some() && self.admin.admin.is_none() && !owner_listens() {
            return Err(not_kept());
        }
        match self.open(Access::Write).await? {
            // The process that listened has ended without removing its file.
            Source::Store { .. } if reason.is_some() => Err(not_kept()),
            source => Ok(source),
        }
    }

    /// The command that somebody could type next, for the same records.
    fn command_line(&self, rest: &str) -> String {
        let mut line = format!("hapax {rest}{}", self.flags.naming());
        if let Some(url) = &self.admin.admin {
            line += &format!(" --admin {}", quoted(url));
        }
        if let Some(file) = &self.admin.admin_token_file {
            line += &format!(" --admin-token-file {}", quoted(&file.display().to_string()));
        }
        line
    }

    /// How long a result is kept that settles the record. A sidecar says it of a record that it was asked for; of a
    /// record in a store that is opened here, the configuration does.
    fn retention_of(&self, found: &Document) -> Result<Duration, Failure> {
        if let Some(told) = found.settle_retention() {
            return Ok(told);
        }
        let config = Config::load(self.flags, std::env::vars_os())?;
        let hapax = Hapax::builder(MemoryStore::new()).sweep(None).keeper(Keeper::SharedRuntime).build();
        let layer = config.layer(&hapax, |route| route.policy.clone());
        Ok(retention_of(&found.record.scope.operation, &layer, &config.routes))
    }
}

/// Tells on stderr what is about to happen to which record.
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
