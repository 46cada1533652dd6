//! The arguments of `hapax client`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// Send the open calls of a journal again, each with its key and its body
    ///
    /// Uncertain calls are listed and not sent. The process that owns the journal has to be stopped first.
    Resume(Resume),
}

#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// The journal, `file:DIR`
    #[arg(long, value_name = "URL")]
    pub(crate) journal: String,
    /// A header of every request, as 'Name: value' (may be repeated): credentials are not in a journal
    #[arg(long, value_name = "LINE", conflicts_with = "list")]
    pub(crate) header: Vec<String>,
    /// Only the calls to this origin (scheme, host and port): required with --header when the journal has calls to several
    #[arg(long, value_name = "URL")]
    pub(crate) origin: Option<String>,
    /// Only list the calls, and send nothing
    #[arg(long)]
    pub(crate) list: bool,
}
