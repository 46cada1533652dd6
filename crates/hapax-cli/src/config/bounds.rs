//! The validation of single values beyond their types. Most limits must not be 0, which would refuse everything; options
//! for which 0 has a meaning of its own are not listed here, and their descriptions state it.

use hapax::http::settings::Span;
use http::uri::{Authority, PathAndQuery};

use super::options::FileOptions;

/// An option with an invalid value.
#[derive(Debug)]
pub(super) struct InvalidValue {
    pub(super) section: &'static str,
    pub(super) option: &'static str,
    /// The reason, and what to write instead.
    pub(super) why: String,
}

/// The first option with an invalid value.
pub(super) fn first_invalid(options: &FileOptions) -> Option<InvalidValue> {
    let default = FileOptions::default();
    let times = times(options).into_iter().zip(times(&default)).filter(|((.., value), _)| value.0.is_zero());
    let times = times.map(|((section, option, _), (.., default))| {
        let why = format!("must be longer than 0s; the default is {default}");
        InvalidValue { section, option, why }
    });
    let counts = counts(options).into_iter().zip(counts(&default)).filter(|((.., value), _)| *value == 0);
    let counts = counts.map(|((section, option, _), (.., default))| {
        let why = format!("must be more than 0; the default is {default}");
        InvalidValue { section, option, why }
    });
    times.chain(counts).chain(health_path(options)).chain(hosts(options)).next()
}

/// The durations that must not be zero.
fn times(options: &FileOptions) -> [(&'static str, &'static str, Span); 16] {
    let FileOptions { transport, upstream_options: upstream, admin, limits, trace, store, .. } = options;
    [
        ("transport", "first_byte", transport.first_byte),
        ("transport", "head", transport.head),
        ("transport", "body_idle", transport.body_idle),
        ("transport", "keep_alive", transport.keep_alive),
        ("transport", "write_idle", transport.write_idle),
        ("upstream_options", "connect", upstream.connect),
        ("upstream_options", "response", upstream.response),
        ("upstream_options", "body_idle", upstream.body_idle),
        ("upstream_options", "tunnel_idle", upstream.tunnel_idle),
        ("upstream_options", "health_interval", upstream.health_interval),
        ("upstream_options", "health_timeout", upstream.health_timeout),
        ("admin", "header_time", admin.header_time),
        ("admin", "request_time", admin.request_time),
        ("limits", "ask_timeout", limits.ask_timeout),
        ("trace", "timeout", trace.timeout),
        ("store", "timeout", store.timeout),
    ]
}

/// The counts and sizes that must not be zero.
fn counts(options: &FileOptions) -> [(&'static str, &'static str, u64); 12] {
    let FileOptions { transport, admin, limits, trace, .. } = options;
    let wide = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    [
        ("transport", "answer_bytes_in_all_max", wide(transport.answer_bytes_in_all_max)),
        ("transport", "connections_max", wide(transport.connections_max)),
        ("transport", "head_bytes_max", wide(transport.head_bytes_max)),
        ("transport", "head_fields_max", wide(transport.head_fields_max)),
        ("transport", "streams_max", transport.streams_max.into()),
        ("admin", "connections_max", wide(admin.connections_max)),
        ("admin", "body_bytes_max", wide(admin.body_bytes_max)),
        ("admin", "audit_bytes_max", admin.audit_bytes_max),
        ("limits", "body_bytes_in_all_max", wide(limits.body_bytes_in_all_max)),
        ("limits", "ask_bytes_max", wide(limits.ask_bytes_max)),
        ("trace", "batch_max", wide(trace.batch_max)),
        ("trace", "queue_max", wide(trace.queue_max)),
    ]
}

fn health_path(options: &FileOptions) -> Option<InvalidValue> {
    let path = options.upstream_options.health_path.as_deref()?;
    let is_path = path.starts_with('/') && path.parse::<PathAndQuery>().is_ok();
    let why = format!("{path:?} is not a path, such as /health");
    (!is_path).then_some(InvalidValue { section: "upstream_options", option: "health_path", why })
}

fn hosts(options: &FileOptions) -> Option<InvalidValue> {
    let is_name = |name: &str| name.parse::<Authority>().is_ok_and(|parsed| parsed.host() == name);
    let name = options.admin.hosts.iter().find(|name| !is_name(name))?;
    let why = format!("{name:?} is not a host name; write it without a scheme and a port");
    Some(InvalidValue { section: "admin", option: "hosts", why })
}
