//! `hapax serve`: loads the configuration and runs the sidecar.

use hapax_admin::TOKEN_VARIABLE;

use crate::args::Serve;
use crate::config::{Config, Flags};
use crate::failure::{Code, Failure};
use crate::output::Output;
use crate::serve;
use crate::telemetry;

/// Threads for the admin listener, for accepting connections and for periodic tasks. Requests have their own threads.
const OTHER_THREADS: usize = 2;

pub(crate) fn run(typed: &Serve, flags: Flags, verbose: bool, output: Output) -> Result<(), Failure> {
    let flags = with_flags(flags, typed, verbose);
    let config = Config::load(&flags, std::env::vars_os())?;
    let config = config.with_token(&flags, std::env::var_os(TOKEN_VARIABLE))?;
    if config.upstream.is_empty() && !typed.demo {
        return Err(Failure::new(Code::ConfigInvalid, "no upstream configured").hint(
            "set --upstream http://HOST:PORT, HAPAX_UPSTREAM or `upstream` in the file, or try --demo",
        ));
    }
    telemetry::logs(&config.log)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(OTHER_THREADS)
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Code::Failed, "cannot start").because(error))?;
    let ended = runtime.block_on(serve::run(config, flags, typed.demo, output));
    // Blocking tasks that still run have exceeded their deadline.
    runtime.shutdown_background();
    ended
}

fn with_flags(flags: Flags, typed: &Serve, verbose: bool) -> Flags {
    let upstream = (!typed.upstream.is_empty()).then(|| typed.upstream.clone());
    let level = typed.log_level.clone().or_else(|| verbose.then(|| "debug".to_owned()));
    flags
        .with("--listen", ("", "listen"), typed.listen.clone())
        .with("--upstream", ("", "upstream"), upstream)
        .with("--admin", ("admin", "listen"), typed.admin.clone())
        .with("--admin-token-file", ("admin", "token_file"), typed.admin_token_file.clone())
        .with("--log-format", ("log", "format"), typed.log_format.map(|format| format.name()))
        .with("--log-level", ("log", "level"), level)
        .with("--trace-endpoint", ("trace", "endpoint"), typed.trace_endpoint.clone())
        .with("--trace-sample-ratio", ("trace", "sample_ratio"), typed.trace_sample_ratio)
}
