//! The command-line arguments. [`commands`](crate::commands) executes them.

#[cfg(feature = "client")]
mod client;

use std::path::PathBuf;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue};
use clap::{ArgGroup, Parser, Subcommand, ValueEnum};
use hapax_admin::time::parse_duration;
use hapax_core::{ByteSize, Class, Format, State};

use crate::commands::plan::{Rate, parse_rate};
use crate::config;
use crate::nearest::nearest;
use crate::telemetry::LogFormat;

#[cfg(feature = "client")]
pub(crate) use self::client::{ClientCommand, Resume};

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed for a reason not listed here
  2  usage: an invalid flag, key, URL or value
  3  the record does not exist
  4  refused: several records match, the record has changed, it is in the wrong
     state, or the change was not confirmed
  5  the store or the journal is missing, unavailable, in use, full, damaged or
     unreadable
  6  shutdown timed out; the operations still running become uncertain
  7  calls in a journal have no final answer

Every error has a code in brackets, such as error[store-in-use], and a page of
that name in docs/errors.";

/// Retry anything, it happens once: the sidecar, keys, records, sweeping and checks.
#[derive(Debug, Parser)]
#[command(name = "hapax", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Extends the error about an unknown flag: if it is an option of the configuration file, says where to set it.
pub(crate) fn explain(mut error: clap::Error) -> clap::Error {
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(flag)) => flag.strip_prefix("--").map(str::to_owned),
        _ => None,
    };
    let Some(typed) = word(ContextKind::InvalidArg) else {
        return error;
    };
    let flag = word(ContextKind::SuggestedArg);
    let options = config::known().iter().map(|known| &*known.name);
    let near = nearest(&typed.replace('-', "_"), flag.as_deref().into_iter().chain(options));
    let known = config::known().iter().find(|known| near == Some(&known.name));
    let Some(known) = known.filter(|_| near != flag.as_deref()) else {
        return error;
    };
    let place = if known.section.is_empty() { String::new() } else { format!(", under [{}]", known.section) };
    let tip =
        format!("`{}` is set in the configuration file{place}: see `hapax check --options`", known.name);
    // The usage would be that of another flag.
    error.remove(ContextKind::SuggestedArg);
    error.remove(ContextKind::Usage);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    error
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// The file to read options from [default: ./hapax.toml, if it exists]
    #[arg(long, global = true, value_name = "FILE", env = "HAPAX_CONFIG")]
    pub(crate) config: Option<PathBuf>,

    /// The store URL: `file:DIR`, `memory:`, `postgres://HOST/DATABASE`, `redis://HOST` or
    /// `dynamodb://TABLE` [default: file:./hapax-data]
    // A store URL may contain a password, so the help does not show the value of the variable.
    #[arg(long, global = true, value_name = "URL", env = "HAPAX_STORE_URL", hide_env_values = true)]
    pub(crate) store: Option<String>,

    /// Redis as a fast tier in front of the store: `redis://HOST?prefix=NAME:`
    #[arg(long, global = true, value_name = "URL", env = "HAPAX_STORE_FAST", hide_env_values = true)]
    pub(crate) fast: Option<String>,

    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Log at level debug, to stderr
    #[arg(long, short, global = true)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the sidecar: a reverse proxy that makes requests to an HTTP service safe to retry
    Serve(Serve),
    /// Generate or derive a key
    #[command(subcommand)]
    Key(KeyCommand),
    /// List and inspect records, and settle uncertain ones
    Records(Box<Records>),
    /// Finish the calls that a process with `hapax-client` left in its journal
    #[cfg(feature = "client")]
    #[command(subcommand)]
    Client(ClientCommand),
    /// Remove expired records
    Sweep(Sweep),
    /// Validate the configuration and the store, and print both with warnings
    Check(Check),
    /// Estimate the memory and disk that each store needs for a load
    Plan(Plan),
    /// Migrate a store to the layout of this version
    Migrate(Migrate),
    /// Print the manual page
    Man {
        /// Write a page for each command into this directory instead
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Flags that take precedence over options of the file.
#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// The address that clients connect to [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// The upstream service (may be repeated for equivalent ones)
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Vec<String>,
    /// The address of the admin listener, or off [default: 127.0.0.1:8081]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) admin: Option<String>,
    /// A file that holds the token of the admin listener [default: a token is generated and printed]
    #[arg(long, value_name = "FILE")]
    pub(crate) admin_token_file: Option<String>,
    /// The format of log lines [default: text]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
    /// The minimum level that is logged: error, warn, info, debug, trace [default: info]
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log_level: Option<String>,
    /// The OpenTelemetry collector that traces are exported to, by OTLP over HTTP [default: none]
    #[arg(long, value_name = "URL")]
    pub(crate) trace_endpoint: Option<String>,
    /// The fraction of traces that are recorded, from 0 to 1 [default: 1]
    #[arg(long, value_name = "RATIO")]
    pub(crate) trace_sample_ratio: Option<f64>,
    /// Run in front of a built-in orders API, and print commands to try
    #[arg(long, conflicts_with = "upstream")]
    pub(crate) demo: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Generate a random key (UUIDv7)
    New,
    /// Derive a key from what identifies an operation
    ///
    /// The same entity, action and params give the same 32 hexadecimal digits in every language: the first half
    /// of SHA-256 over `ENTITY:ACTION`, followed by `:` and the params as Python's
    /// `json.dumps(params, sort_keys=True)` writes them, if there are any.
    Derive {
        /// The entity, such as order-123
        entity: String,
        /// The action on the entity, such as create
        action: String,
        /// Further parameters that distinguish the operation from others, as JSON
        #[arg(long, value_name = "JSON")]
        params: Option<String>,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Records {
    #[command(flatten)]
    pub(crate) admin: AdminAccess,
    #[command(subcommand)]
    pub(crate) command: RecordsCommand,
}

/// A running sidecar, queried instead of a store.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "A running sidecar")]
pub(crate) struct AdminAccess {
    /// Query the sidecar whose admin listener is at this URL, instead of opening a store
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) admin: Option<String>,
    /// The file that holds the token of the admin listener; HAPAX_ADMIN_TOKEN may hold the token itself
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) admin_token_file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RecordsCommand {
    /// List records, newest first
    List(List),
    /// Show a record and its history
    Show(Show),
    /// Settle an uncertain record: its operation was applied, or it was not
    Settle(Settle),
    /// Free the key of an uncertain record for a new run (the same as settle --not-applied)
    ///
    /// Only for an operation that is known not to have happened: the next request with the key runs it.
    Release(Change),
    /// Remove a record: the next request with its key runs as a first request
    Delete(Change),
}

/// The default number of records on a page.
pub(crate) const LIMIT_DEFAULT: u32 = 100;

#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Only records in this state (may be repeated)
    #[arg(long, value_name = "STATE", value_parser = parse_state)]
    pub(crate) state: Vec<State>,
    /// Only this namespace
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Only operations with this prefix
    #[arg(long, value_name = "PREFIX")]
    pub(crate) operation: Option<String>,
    /// Only records whose id starts with these hexadecimal digits
    #[arg(long, value_name = "PREFIX", conflicts_with = "key")]
    pub(crate) id: Option<String>,
    /// Only records of this key, in any scope
    #[arg(long)]
    pub(crate) key: Option<String>,
    /// Only records that have not changed for this long: 90s, 24h, 7d
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) older_than: Option<Duration>,
    /// Only records that have changed within this time
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) newer_than: Option<Duration>,
    /// The number of records on a page
    #[arg(long, value_name = "COUNT", default_value_t = LIMIT_DEFAULT, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) limit: u32,
    /// Continue from this cursor, printed with the previous page
    #[arg(long)]
    pub(crate) cursor: Option<String>,
    /// Print all pages
    #[arg(long)]
    pub(crate) all: bool,
}

/// Names a record: by its id, or by its key and as much of the scope as is known.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("name").required(true).args(["id", "key"]))]
pub(crate) struct Name {
    /// The record's id, or at least its first 8 hexadecimal digits
    pub(crate) id: Option<String>,
    /// The key, instead of an id
    #[arg(long)]
    pub(crate) key: Option<String>,
    /// The key's operation; without it every scope is searched
    #[arg(long, value_name = "NAME", requires = "key")]
    pub(crate) operation: Option<String>,
    /// The key's namespace
    #[arg(long, value_name = "NAME", requires = "key")]
    pub(crate) namespace: Option<String>,
    /// The key's principal, as the service identifies it
    #[arg(long, value_name = "NAME", requires = "key")]
    pub(crate) principal: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    #[command(flatten)]
    pub(crate) name: Name,
    /// Also show the stored result, which may be confidential
    #[arg(long)]
    pub(crate) payload: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Change {
    #[command(flatten)]
    pub(crate) name: Name,
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// The reason, for the audit log of a running sidecar
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("verdict").required(true).args(["applied", "not_applied"]))]
#[command(group = ArgGroup::new("result").args(["payload", "payload_file", "json_value", "status"]))]
pub(crate) struct Settle {
    #[command(flatten)]
    pub(crate) change: Change,
    #[command(flatten)]
    pub(crate) response: ResponseArgs,
    /// The operation happened: retries receive the result given here
    #[arg(long)]
    pub(crate) applied: bool,
    /// The operation did not happen: the next request with the key runs it
    #[arg(long, conflicts_with_all = ["result", "class", "format", "retention"])]
    pub(crate) not_applied: bool,
    /// The result that the function returned, in JSON
    #[arg(long, value_name = "JSON", conflicts_with = "format")]
    pub(crate) json_value: Option<String>,
    /// The result as text
    #[arg(long, value_name = "TEXT")]
    pub(crate) payload: Option<String>,
    /// The result, read from a file (`-` for stdin)
    #[arg(long, value_name = "FILE")]
    pub(crate) payload_file: Option<PathBuf>,
    /// Whether the operation succeeded; derived from the status of an HTTP response
    #[arg(long, value_enum, default_value_t = ClassName::Success, conflicts_with = "status")]
    pub(crate) class: ClassName,
    /// The format of the payload: text for operators, or the JSON result of a function
    #[arg(long, value_enum, default_value_t = FormatName::Operator, conflicts_with = "status")]
    pub(crate) format: FormatName,
    /// How long retries receive the result [default: the retention of the record's route, 24h for a function]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) retention: Option<Duration>,
}

/// The response that retries of an HTTP request receive.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "The response to an HTTP request")]
#[command(group = ArgGroup::new("content").args(["body", "body_json", "body_file"]))]
pub(crate) struct ResponseArgs {
    /// The status that retries receive, such as 201; `records show` says whether the record is of an HTTP request
    #[arg(long, value_name = "CODE")]
    pub(crate) status: Option<u16>,
    /// A header that retries receive, as 'Name: value' (may be repeated)
    #[arg(long, value_name = "LINE", requires = "status")]
    pub(crate) header: Vec<String>,
    /// The type of the body [default for --body-json: application/json]
    #[arg(long, value_name = "TYPE", requires = "status")]
    pub(crate) content_type: Option<String>,
    /// The body as text
    #[arg(long, value_name = "TEXT", requires = "status")]
    pub(crate) body: Option<String>,
    /// The body as JSON, sent unchanged
    #[arg(long, value_name = "JSON", requires = "status")]
    pub(crate) body_json: Option<String>,
    /// The body, read from a file (`-` for stdin)
    #[arg(long, value_name = "FILE", requires = "status")]
    pub(crate) body_file: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ClassName {
    Success,
    Error,
}

impl From<ClassName> for Class {
    fn from(name: ClassName) -> Self {
        match name {
            ClassName::Success => Self::Success,
            ClassName::Error => Self::Error,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum FormatName {
    Operator,
    Function,
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Operator => Self::OPERATOR,
            FormatName::Function => Self::FUNCTION,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Sweep {
    /// How many records are removed in one step
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) batch: u32,
    /// Repeat the sweep at this interval until stopped
    #[arg(long, value_name = "DURATION", value_parser = parse_interval)]
    pub(crate) every: Option<Duration>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// Also read every page, index and record, and fail if any is damaged; slow for a large store
    #[arg(long)]
    pub(crate) deep: bool,
    /// Print the JSON Schema of hapax.toml instead
    #[arg(long, conflicts_with_all = ["deep", "options"])]
    pub(crate) schema: bool,
    /// Print all options with their variables and defaults instead, as Markdown tables
    #[arg(long, conflicts_with = "deep")]
    pub(crate) options: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Plan {
    /// The rate of operations with keys: 500/s, 30000/m
    #[arg(long, value_parser = parse_rate)]
    pub(crate) rate: Rate,
    /// How long finished records are kept
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = parse_duration)]
    pub(crate) retention: Duration,
    /// The size of a response body
    #[arg(long, value_name = "SIZE", default_value = "2KiB")]
    pub(crate) body: ByteSize,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Migrate {
    /// Only print what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
}

fn parse_state(text: &str) -> Result<State, String> {
    State::from_name(text).ok_or_else(|| {
        let names: Vec<_> = State::ALL.iter().map(|state| state.name()).collect();
        format!("known states are {}", names.join(", "))
    })
}

/// An interval of zero would keep the store busy all the time.
fn parse_interval(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        Duration::ZERO => Err("the interval must be longer than 0s".to_owned()),
        span => Ok(span),
    }
}

#[cfg(test)]
mod tests;
