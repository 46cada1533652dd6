//! Logs and metrics of a running sidecar: how they are written, never what is in them.

use std::io::{self, IsTerminal};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;

use crate::failure::{Code, Failure};

/// What is logged, and how.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LogOptions {
    /// How lines look.
    pub(crate) format: LogFormat,
    /// The least that is logged: `error`, `warn`, `info`, `debug`, `trace`; by part, as in `info,hapax=debug`.
    pub(crate) level: String,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { format: LogFormat::default(), level: "info".to_owned() }
    }
}

/// How lines of the log look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// Text for people, in colour on a terminal.
    #[default]
    Text,
    /// One JSON document in each line.
    Json,
}

impl LogFormat {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// Writes logs to stderr from now on.
pub(crate) fn logs(options: &LogOptions) -> Result<(), Failure> {
    let filter: EnvFilter = options.level.parse().map_err(|error| {
        Failure::new(Code::ConfigInvalid, format!("{:?} is no level of the log", options.level))
            .because(error)
            .hint("write error, warn, info, debug or trace")
    })?;
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    match options.format {
        LogFormat::Text => logs.with_ansi(io::stderr().is_terminal()).init(),
        LogFormat::Json => logs.json().flatten_event(true).init(),
    }
    Ok(())
}
