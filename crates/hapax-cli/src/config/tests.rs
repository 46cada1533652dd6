mod guide;
mod sizes;
mod surroundings;

use std::path::Path;

use hapax::http::settings::{Span, Text};
use hapax::http::{KeyMode, RefusalShapeName};
use tempfile::TempDir;

use super::*;

/// A file with this text, and the configuration that it and the variables result in.
fn load(text: &str, variables: &[(&str, &str)]) -> (TempDir, Result<Config, Failure>) {
    load_with(text, variables, |flags| flags)
}

fn load_with(
    text: &str,
    variables: &[(&str, &str)],
    typed: impl FnOnce(Flags) -> Flags,
) -> (TempDir, Result<Config, Failure>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hapax.toml");
    std::fs::write(&path, text).unwrap();
    let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
    let config = Config::load(&typed(Flags::new(Some(path))), variables);
    (dir, config)
}

#[track_caller]
fn loaded(text: &str) -> Config {
    load(text, &[]).1.unwrap_or_else(|failure| panic!("{text}: {failure:?}"))
}

/// The error as it is printed, without the directory of the file.
fn refusal(text: &str, variables: &[(&str, &str)]) -> String {
    let (dir, config) = load(text, variables);
    let failure = match config {
        Ok(_) => panic!("{text} is accepted"),
        Err(failure) => failure,
    };
    assert_eq!(failure.code(), Code::ConfigInvalid, "{failure:?}");
    failure.text().replace(&format!("{}/", dir.path().display()), "")
}

/// The file of the guide, with all sections.
const WHOLE: &str = r#"
listen = "127.0.0.1:8080"
upstream = "http://127.0.0.1:3000"

[store]
url = "file:./hapax-data"

[defaults]
header = "Idempotency-Key"
key = "optional"
retention = "24h"
lease = "30s"
wait = "0s"
principal = "header:Authorization"
on_lapse = "uncertain"
on_store_error = "refuse"

[[route]]
methods = ["POST"]
path = "/v1/payments/**"
key = "required"
dialect = "stripe-v1"
"#;

#[test]
fn routes_inherit_the_defaults_field_by_field() {
    let config = loaded(&WHOLE.replace("retention = \"24h\"", "retention = \"2h\""));
    let [payments, rest] = &config.routes[..] else { panic!("{config:?}") };
    assert_eq!((payments.paths(), rest.paths()), ("/v1/payments/**", "/**"));
    let (payments, rest) = (payments.policy.settings(), rest.policy.settings());
    assert_eq!(payments.retention, Some("2h".parse::<Span>().unwrap()));
    assert_eq!(rest.retention, payments.retention);
    assert_eq!((payments.key, rest.key), (Some(KeyMode::Required), Some(KeyMode::Optional)));
    // The dialect of the route provides the defaults of inherited options.
    assert_eq!(payments.replay_marker.unwrap(), "idempotent-replayed");
    assert_eq!(rest.replay_marker.unwrap(), "x-idempotent-replayed");
}

#[test]
fn an_empty_file_has_the_documented_defaults() {
    let config = Config::load(&Flags::new(Some(empty_file().path().join("e.toml"))), []);
    assert!(config.is_err(), "a named file must exist");
    let config = loaded("");
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.store, StoreUrl::File("./hapax-data".into()));
    assert_eq!(config.admin.listen.to_string(), "127.0.0.1:8081");
    assert_eq!(config.drain, Duration::from_secs(30));
    assert!(config.upstream.is_empty() && config.tls.is_none() && config.routes.len() == 1);
}

fn empty_file() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn flags_take_precedence_over_variables_and_variables_over_the_file() {
    let text = "listen = \"127.0.0.1:1\"\n[store]\nurl = \"file:a\"\n[defaults]\nlease = \"10s\"\n";
    let variables = [("HAPAX_LISTEN", "127.0.0.1:2"), ("HAPAX_STORE_URL", "file:b"), ("OTHER_LISTEN", "x")];
    let typed = |flags: Flags| flags.with("--listen", ("", "listen"), Some("127.0.0.1:3"));
    let config = load_with(text, &variables, typed).1.unwrap();
    assert_eq!(config.listen.port(), 3);
    assert_eq!(config.store, StoreUrl::File("b".into()));
    assert_eq!(config.routes[0].policy.settings().lease, Some("10s".parse().unwrap()));
    let config = load(text, &variables).1.unwrap();
    assert_eq!(config.listen.port(), 2);
}

#[test]
fn every_type_of_value_can_be_set_by_a_variable() {
    let variables = [
        ("HAPAX_UPSTREAM", "http://127.0.0.1:1, http://127.0.0.1:2"),
        ("HAPAX_DEFAULTS_METHODS", "POST,DELETE"),
        ("HAPAX_DEFAULTS_KEY_FROM", "[\"header:x-one\", \"query:two\"]"),
        ("HAPAX_DEFAULTS_KEY_LENGTH_MAX", "64"),
        ("HAPAX_DEFAULTS_MARK_FIRST", "true"),
        ("HAPAX_DEFAULTS_STATUSES", "{ key-reused = 400 }"),
        ("HAPAX_DEFAULTS_REFUSALS", "google"),
        ("HAPAX_DEFAULTS_WAIT", "2s"),
        ("HAPAX_STORE_SWEEP", "off"),
    ];
    let config = load("", &variables).1.unwrap();
    let settings = config.routes[0].policy.settings();
    assert_eq!(config.upstream.len(), 2);
    assert_eq!(settings.methods.unwrap(), ["POST", "DELETE"]);
    assert_eq!(
        settings.key_from.unwrap().iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["header:x-one", "query:two"]
    );
    assert_eq!((settings.key_length_max, settings.mark_first), (Some(64), Some(true)));
    assert_eq!(u16::from(settings.statuses.unwrap()[&Text(hapax::http::Code::KeyReused)]), 400);
    assert_eq!(settings.refusals, Some(RefusalShapeName::Google.into()));
    assert_eq!(settings.wait, Some("2s".parse().unwrap()));
    let own = "{ media_type = \"text/html\", body = \"<p>{detail}</p>\" }";
    let own = load("", &[("HAPAX_DEFAULTS_REFUSALS", own)]).1.unwrap().routes[0].policy.settings();
    assert!(serde_json::json!(own)["refusals"].is_object(), "{own:?}");
    assert_eq!(config.store_options.sweep.0, None);
}

#[test]
fn a_webhook_sender_is_a_name_or_a_table() {
    let sender = |file: &str, variable: &str| {
        let secrets = ("HAPAX_DEFAULTS_WEBHOOK_SECRETS", "s3cret");
        let variables = [secrets, ("HAPAX_DEFAULTS_WEBHOOK", variable)];
        let variables = if variable.is_empty() { &variables[..1] } else { &variables[..] };
        let policy = &load(file, variables).1.unwrap().routes[0].policy;
        serde_json::to_value(policy.settings().webhook).unwrap()
    };
    assert_eq!(sender("[defaults]\nwebhook = \"github\"", ""), "github");
    assert_eq!(sender("", "github"), "github");
    let url = "https://hooks.example.com";
    for found in [
        sender(&format!("[defaults.webhook]\npreset = \"twilio\"\nurl = \"{url}\""), ""),
        sender("", &format!("{{ preset = \"twilio\", url = \"{url}\" }}")),
    ] {
        assert_eq!(found, serde_json::json!({ "preset": "twilio", "url": url }));
    }
    let message = refusal("[defaults]\nwebhook = { header = \"x-sig\", hash = \"md5\" }", &[]);
    assert!(message.contains("hash"), "{message}");
}

#[test]
fn errors_have_the_location_and_the_nearest_name() {
    let cases: &[(&str, &[&str])] = &[
        ("listn = \"x\"", &["hapax.toml:1:1: ", "`listn`", "did you mean `listen`?"]),
        ("[defalts]\nkey = \"off\"", &["hapax.toml:1:2: ", "did you mean `defaults`?"]),
        ("[defaults]\n\n  retenton = \"1h\"", &["hapax.toml:3:3: ", "did you mean `retention`?"]),
        ("[[route]]\npath = \"/a\"\nreconcil = \"x\"", &["hapax.toml:3:1: ", "did you mean `reconcile`?"]),
        ("[drain]\nlimits = \"1s\"", &["hapax.toml:2:1: ", "did you mean `limit`?"]),
        ("retention = \"1h\"", &["hapax.toml:1:1: ", "`retention` belongs under [defaults]"]),
        ("[store]\nlisten = \"x\"", &["hapax.toml:2:1: ", "write `listen` above the first section"]),
        ("store = \"file:a\"", &["hapax.toml:1:1: ", "write [store]"]),
        ("[route]\npath = \"/a\"", &["hapax.toml:1:2: ", "write [[route]]"]),
        ("[defaults]\nlease = 30", &["hapax.toml:2:9: ", "`lease`", "30"]),
        ("[defaults]\nkey = \"requird\"", &["hapax.toml:2:7: ", "`requird`", "`required`"]),
        ("[defaults]\nlease = \"1ms\"", &["hapax.toml:2:9: ", "`lease`", "30ms"]),
        ("[[route]]\npath = \"/a\"\nlease = \"half\"", &["hapax.toml:3:9: ", "`lease`"]),
        ("[[route]]\npath = \"/a\"\nmethods = [\"GET\"]", &["hapax.toml:3:11: ", "never covered"]),
        ("[[route]]\nkey = \"off\"", &["hapax.toml:1:1: ", "has no paths"]),
        ("[[route]]\npath = \"a\"", &["hapax.toml:2:8: ", "starts with /"]),
        ("[[route]]\npath_regex = \"(\"", &["hapax.toml:2:14: ", "does not compile"]),
        ("[[route]]\npath = \"/a\"\npath_regex = \"a\"", &["hapax.toml:3:14: ", "not both"]),
        ("[[route]]\npath = \"/a\"\nreconcile = \"/b\"", &["hapax.toml:3:13: ", "http://"]),
        ("listen = \"localhost\"", &["hapax.toml:1:10: ", "IP:PORT"]),
        ("upstream = \"127.0.0.1:3000\"", &["hapax.toml:1:12: ", "http://"]),
        ("upstream = [\"http://a\", \"http://b/c\"]", &["hapax.toml:1:12: ", "must have no path"]),
        ("upstream = 5", &["hapax.toml:1:12: ", "a URL or a list of URLs"]),
        ("[log]\nlevel = \"inof\"", &["hapax.toml:2:9: ", "did you mean info?"]),
        ("[log]\nlevel = \"info,hapax=loud\"", &["hapax.toml:2:9: ", "\"loud\" is not a level"]),
        ("[log]\nformat = \"xml\"", &["hapax.toml:2:10: ", "`json`"]),
        ("[admin]\nlisten = \"everywhere\"", &["hapax.toml:2:10: ", "or off"]),
        ("[tls]\nkey = \"k.pem\"", &["hapax.toml:2:7: ", "`certificate`"]),
        ("[store]\nsweep = \"0s\"", &["hapax.toml:2:9: ", "write off"]),
        ("listen = ", &["hapax.toml:1:"]),
        ("listen = \"a\"\nlisten = \"b\"", &["hapax.toml:2:1: ", "duplicate key"]),
        ("# Zürich\n[log]\nä = 1", &["hapax.toml:3:1: "]),
    ];
    for (text, expected) in cases {
        let message = refusal(text, &[]);
        for part in *expected {
            assert!(message.contains(part), "{text:?} results in {message:?}, without {part:?}");
        }
    }
}

#[test]
fn errors_in_the_environment_name_the_variable() {
    let cases = [
        ("HAPAX_LISTN", "x", "did you mean HAPAX_LISTEN?"),
        ("HAPAX_DEFAULTS_RETENTON", "1h", "did you mean HAPAX_DEFAULTS_RETENTION?"),
        ("HAPAX_SOMETHING_ELSE_ENTIRELY", "1", "unset it"),
        ("HAPAX_LISTEN", "8080", "HAPAX_LISTEN: "),
        ("HAPAX_DEFAULTS_LEASE", "soon", "HAPAX_DEFAULTS_LEASE: "),
        ("HAPAX_DEFAULTS_LEASE", "1ms", "HAPAX_DEFAULTS_LEASE: "),
        ("HAPAX_DEFAULTS_MARK_FIRST", "yes", "true or false"),
        ("HAPAX_DEFAULTS_KEY_LENGTH_MAX", "many", "a whole number"),
        ("HAPAX_DEFAULTS_STATUSES", "{", "not a TOML value"),
    ];
    for (name, value, expected) in cases {
        let message = refusal("", &[(name, value)]);
        assert!(message.contains(expected), "{name}={value} results in {message:?}");
    }
}

#[test]
fn variables_that_are_not_options_are_ignored() {
    let variables = [("HAPAX_CONFIG", "elsewhere.toml"), ("HAPAX_ADMIN_TOKEN", "canary"), ("PATH", "/bin")];
    assert!(load("", &variables).1.is_ok());
}

#[test]
fn the_token_comes_from_a_flag_then_the_environment_then_the_file() {
    let tokens = tempfile::tempdir().unwrap();
    let file = |token: &str| {
        let path = tokens.path().join(token);
        std::fs::write(&path, format!("{token}-0123456789ab")).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (of_flag, of_option, of_variable) = (file("flag"), file("option"), file("variable"));
    let text = format!("[admin]\ntoken_file = {of_option:?}");
    let cases = [
        (Some(&of_flag), Some("itself-0123456789ab"), Some(&of_variable), "flag"),
        (Some(&of_flag), None, Some(&of_variable), "flag"),
        (None, Some("itself-0123456789ab"), Some(&of_variable), "itself"),
        (None, None, Some(&of_variable), "variable"),
        (None, Some("itself-0123456789ab"), None, "itself"),
        (None, None, None, "option"),
    ];
    for (flag, token, variable, expected) in cases {
        let variables: Vec<_> =
            variable.map(|path| ("HAPAX_ADMIN_TOKEN_FILE", path.as_str())).into_iter().collect();
        let typed = |flags: Flags| flags.with("--admin-token-file", ("admin", "token_file"), flag.cloned());
        let (_dir, config) = load_with(&text, &variables, typed);
        let flags = typed(Flags::default());
        let config = config.unwrap().with_token(&flags, token.map(Into::into)).unwrap();
        let chosen = config.admin.configured_token().unwrap().unwrap();
        assert_eq!(chosen.reveal(), format!("{expected}-0123456789ab"));
    }
}

#[test]
fn the_audit_log_is_beside_the_records_or_in_its_own_directory() {
    let cases = [
        ("[store]\nurl = \"file:/srv/records\"", Some("/srv/records")),
        ("[store]\nurl = \"memory:\"", None),
        ("[store]\nurl = \"redis://127.0.0.1\"", Some("./hapax-audit")),
        ("[store]\nurl = \"postgres://127.0.0.1/orders\"", Some("./hapax-audit")),
        (
            "[store]\nurl = \"postgres://127.0.0.1/orders\"\nfast = \"redis://127.0.0.1?prefix=a:\"",
            Some("./hapax-audit"),
        ),
        ("[store]\nurl = \"memory:\"\n[admin]\naudit_dir = \"/srv/logs\"", Some("/srv/logs")),
        ("[admin]\naudit_dir = \"/var/log/hapax\"", Some("/var/log/hapax")),
    ];
    for (text, expected) in cases {
        assert_eq!(loaded(text).audit_dir(), expected.map(Path::new), "{text}");
    }
}

#[test]
fn a_limit_of_zero_is_refused_with_its_location_and_the_default() {
    let options = [
        ("transport", "first_byte", "10s"),
        ("transport", "head", "10s"),
        ("transport", "body_idle", "30s"),
        ("transport", "keep_alive", "1m 15s"),
        ("transport", "write_idle", "30s"),
        ("transport", "connections_max", "20000"),
        ("transport", "head_bytes_max", "32768"),
        ("transport", "head_fields_max", "100"),
        ("transport", "streams_max", "100"),
        ("upstream_options", "connect", "5s"),
        ("upstream_options", "response", "1m"),
        ("upstream_options", "body_idle", "5m"),
        ("upstream_options", "tunnel_idle", "10m"),
        ("upstream_options", "health_interval", "2s"),
        ("upstream_options", "health_timeout", "1s"),
        ("admin", "connections_max", "256"),
        ("admin", "body_bytes_max", "4194304"),
        ("admin", "audit_bytes_max", "16777216"),
        ("admin", "header_time", "10s"),
        ("admin", "request_time", "30s"),
        ("limits", "body_bytes_in_all_max", "268435456"),
        ("limits", "ask_timeout", "5s"),
        ("limits", "ask_bytes_max", "1048576"),
        ("trace", "timeout", "5s"),
        ("trace", "batch_max", "512"),
        ("trace", "queue_max", "4096"),
        ("store", "timeout", "5s"),
    ];
    for (section, option, default) in options {
        let zero = if default.ends_with(['s', 'm']) { "\"0s\"" } else { "0" };
        let message = refusal(&format!("[{section}]\n{option} = {zero}"), &[]);
        assert!(
            message.contains("hapax.toml:2:") && message.ends_with(&format!("the default is {default}")),
            "{message}"
        );
    }
    let message = refusal("", &[("HAPAX_TRANSPORT_STREAMS_MAX", "0")]);
    assert!(message.contains("HAPAX_TRANSPORT_STREAMS_MAX: must be more than 0"), "{message}");
}

#[test]
fn warnings_about_plain_http_show_no_secrets() {
    let config = loaded(
        "[[route]]\npath = \"/a\"\nreconcile = \"http://10.0.0.7/asked?token=canary\"\n\
         authorise = \"http://127.0.0.1/may-they\"\n[[route]]\npath = \"/b\"\nauthorise = \"https://10.0.0.7/\"",
    );
    let risks = config.risks();
    let expected = "/a: reconcile: http://10.0.0.7/asked?… is on another machine and used over plain HTTP";
    assert_eq!(risks, [expected]);
}

#[test]
fn zero_is_accepted_where_it_has_a_meaning() {
    loaded(
        "[transport]\nbody_rate_min = 0\nconnections_per_peer_max = 0\n\
         [upstream_options]\nkeep_alive = \"0s\"\nconnections_max = 0\nconnection_wait = \"0s\"\nidle_max = 0\n\
         [admin]\ndisk_free_min = 0\n[store]\ncache_bytes = 0\n[drain]\nlimit = \"0s\"\n[trace]\nlinks_max = 0\n\
         [limits]\nwaiters_per_key_max = 0\nwaiters_in_all_max = 0\nask_idle_max = 0\nask_keep_alive = \"0s\"",
    );
}

#[test]
fn invalid_paths_and_host_names_are_refused() {
    let path = |path: &str| format!("[upstream_options]\nhealth_path = {path:?}");
    let host = |host: &str| format!("[admin]\nhosts = [\"hapax.example\", {host:?}]");
    for text in [path("x"), path(""), path("http://a/x"), path("/a b")] {
        assert!(refusal(&text, &[]).contains("is not a path, such as"), "{text}");
    }
    for text in
        [host("a.example:8081"), host("http://a.example"), host(""), host("a/b"), host("user@a.example")]
    {
        assert!(refusal(&text, &[]).contains("without a scheme and a port"), "{text}");
    }
    loaded(&path("/health?deep=1"));
    loaded(&host("a.example"));
    loaded(&host("[fd00::1]"));
}

#[test]
fn a_file_over_the_size_limit_is_refused() {
    let message = refusal(&"#".repeat((4 << 20) + 1), &[]);
    assert!(message.contains("is larger than 4194304 bytes"), "{message}");
    assert!(load(&"#".repeat(4 << 20), &[]).1.is_ok());
}

#[test]
fn errors_do_not_repeat_secrets() {
    let canary = "whsec_canary";
    for text in [
        format!("[defaults]\nwebhook_secrets = \"{canary}\""),
        format!("[defaults]\nwebhook_secrets = [\"{canary}\""),
        format!("[[route]]\npath = \"/a\"\nwebhook_secrets = {{ {canary} = 1 }}"),
        format!("upstream = \"ftp://user:{canary}@host\""),
        format!("upstream = \"http://user:{canary}@host\""),
    ] {
        let message = refusal(&text, &[]);
        assert!(!message.contains(canary), "{message}");
    }
    let message = refusal("", &[("HAPAX_DEFAULTS_WEBHOOK_SECRETS", "{ whsec_canary = 1")]);
    assert!(!message.contains(canary), "{message}");
}

#[test]
fn a_document_omits_the_query_of_a_url() {
    let config = loaded("[[route]]\npath = \"/a\"\nreconcile = \"http://a/b?token=canary\"");
    let document = config.document();
    assert_eq!(document["routes"][0]["reconcile"], "http://a/b?…");
}

#[test]
fn unsafe_settings_are_warned_about_and_safe_ones_are_not() {
    let safe =
        "[defaults]\nprincipal = \"header:X-Tenant\"\nprincipal_verified = true\nanonymous = \"refuse\"\n";
    assert_eq!(loaded(safe).routes[0].warnings(), [""; 0]);
    assert_eq!(loaded(safe).warnings(), [""; 0]);
    let cases = [
        ("on_store_error = \"pass\"", "unprotected"),
        ("on_lapse = \"rerun\"", "twice"),
        ("fingerprint = \"key\"", "another request"),
        ("early_data = \"accept\"", "replayed"),
        ("replay_set_cookie = true", "cookies"),
        ("release = [\"504\"]", "gateway"),
        ("release = [\"5xx\"]", "gateway"),
        ("release = [\"5xx\"]\nuncertain = [\"502\"]", "gateway"),
    ];
    for (option, expected) in cases {
        let warnings = loaded(&format!("{safe}{option}\n")).routes[0].warnings();
        assert!(matches!(&warnings[..], [one] if one.contains(expected)), "{option}: {warnings:?}");
    }
    for option in ["release = [\"500\"]", "release = [\"5xx\"]\nuncertain = [\"502\", \"504\"]"] {
        assert_eq!(loaded(&format!("{safe}{option}\n")).routes[0].warnings(), [""; 0], "{option}");
    }
    assert!(loaded("").routes[0].warnings().iter().any(|warning| warning.contains("credential")));
    let cases = [
        ("listen = \"0.0.0.0:8080\"", "plain HTTP"),
        ("upstream = \"http://db.example:80\"", "plain HTTP"),
        ("[admin]\nlisten = \"0.0.0.0:8081\"", "admin: "),
        ("[store]\nurl = \"memory:\"", "loses all records"),
        ("[store]\nsweep = \"off\"", "hapax sweep"),
    ];
    for (text, expected) in cases {
        let warnings = loaded(text).warnings();
        assert!(matches!(&warnings[..], [one] if one.contains(expected)), "{text}: {warnings:?}");
    }
    for text in
        ["upstream = \"http://[::1]:80\"", "upstream = \"https://db.example\"", "[admin]\nlisten = \"off\""]
    {
        assert_eq!(loaded(text).warnings(), [""; 0], "{text}");
    }
}

#[test]
fn an_unreachable_route_is_refused_with_its_location() {
    let message = refusal(
        "[[route]]\npath = \"/v1/**\"\n\n[[route]]\npath = \"/v1/payments\"\nkey = \"required\"\n",
        &[],
    );
    let why = "no request reaches the route `/v1/payments`: `/v1/**` before it takes all of them";
    assert!(message.contains(&format!("hapax.toml:4:1: {why}")), "{message}");
    assert!(message.contains("move it before"), "{message}");
    loaded("[[route]]\npath = \"/v1/payments\"\nkey = \"required\"\n\n[[route]]\npath = \"/v1/**\"\n");
}

#[test]
fn methods_are_case_insensitive_and_unknown_ones_are_refused() {
    let route = "[[route]]\npath = \"/a\"\nkey = \"required\"\nmethods = ";
    let config = loaded(&format!("{route}[\"post\"]"));
    assert_eq!(config.routes[0].policy.settings().methods.unwrap(), ["POST"]);
    let message = refusal(&format!("{route}[\"PSOT\"]"), &[]);
    assert!(message.contains("hapax.toml:4:11: `methods`: \"PSOT\" is not a method"), "{message}");
}

#[test]
fn every_option_has_a_description_and_every_variable_a_unique_name() {
    let mut variables: Vec<_> = known().iter().filter_map(OptionInfo::variable).collect();
    for option in known() {
        assert!(!option.description.is_empty(), "{}.{} has no description", option.section, option.name);
    }
    let count = variables.len();
    variables.sort();
    variables.dedup();
    assert_eq!(variables.len(), count);
    assert!(variables.contains(&"HAPAX_STORE_URL".to_owned()));
}

#[test]
fn the_schema_and_the_policy_have_the_same_options() {
    for option in known().iter().filter(|option| option.section == "defaults") {
        let is_of_route = |known: &&OptionInfo| known.section == ROUTE && known.name == option.name;
        assert!(known().iter().any(|known| is_of_route(&known)), "{} is no option of a route", option.name);
    }
    let settings = serde_json::to_value(HttpPolicy::default().settings()).unwrap();
    for name in settings.as_object().unwrap().keys() {
        assert!(known().iter().any(|known| known.section == "defaults" && known.name == *name), "{name}");
    }
}

#[test]
fn standard_variables_have_the_lowest_precedence() {
    let standard = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://of-all:4318");
    let own = ("HAPAX_TRACE_ENDPOINT", "http://of-the-variable:4318");
    let file = "[trace]\nendpoint = \"http://of-the-file:4318\"\n";
    let empty = ("OTEL_SERVICE_NAME", "");
    for (text, variables, expected) in [
        ("", &[][..], None),
        ("", &[empty], None),
        ("", &[standard, empty], Some("http://of-all:4318/")),
        (file, &[standard], Some("http://of-the-file:4318/")),
        (file, &[own, standard], Some("http://of-the-variable:4318/")),
    ] {
        let trace = load(text, variables).1.unwrap().trace;
        assert_eq!(trace.endpoint.map(String::from).as_deref(), expected, "{text} {variables:?}");
        assert_eq!(trace.service_name, "hapax");
    }
}

#[test]
fn a_ratio_is_a_number() {
    for (text, variable) in [
        ("[trace]\nsample_ratio = 0.5\n", None),
        ("", Some("0.5")),
        ("[trace]\nsample_ratio = 1\n", Some("0.5")),
    ] {
        let variables: Vec<_> =
            variable.map(|value| ("HAPAX_TRACE_SAMPLE_RATIO", value)).into_iter().collect();
        let trace = load(text, &variables).1.unwrap().trace;
        assert_eq!(f64::from(trace.sample_ratio), 0.5, "{text} {variable:?}");
    }
    let refused = refusal("[trace]\nsample_ratio = 1.5\n", &[]);
    assert!(refused.contains("hapax.toml:2:16: ") && refused.contains("between 0 and 1"), "{refused}");
    let refused = refusal("", &[("HAPAX_TRACE_SAMPLE_RATIO", "half")]);
    assert!(refused.contains("HAPAX_TRACE_SAMPLE_RATIO: expected a number"), "{refused}");
    let refused = refusal("", &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://me:canary@host")]);
    assert!(refused.contains("OTEL_EXPORTER_OTLP_ENDPOINT: ") && !refused.contains("canary"), "{refused}");
}

#[test]
fn the_committed_schema_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("hapax.schema.json");
    let shipped = std::fs::read_to_string(path).unwrap();
    let current = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    assert!(shipped == current, "run `hapax check --schema > crates/hapax-cli/hapax.schema.json`");
}

#[cfg(feature = "redis")]
const NARROW: &str = "[store]\nurl = \"redis://127.0.0.1?prefix=shop:&outcome_bytes_max=1000\"\n";

#[cfg(feature = "redis")]
#[test]
fn a_route_limit_above_the_limit_of_the_store_is_refused() {
    let cases = [
        ("[[route]]\npath = \"/a\"\noutcome_bytes_max = 1001", "hapax.toml:5:21"),
        ("[defaults]\noutcome_bytes_max = 1001\n[[route]]\npath = \"/a\"", "hapax.toml:4:21"),
        ("[defaults]\noutcome_bytes_max = 1001", "hapax.toml:4:21"),
    ];
    for (routes, place) in cases {
        let message = refusal(&format!("{NARROW}{routes}"), &[]);
        let why = "`outcome_bytes_max`: 1001 is more than the limit of redis://127.0.0.1:6379/0?prefix=shop:, which is 1000";
        assert!(message.contains(&format!("{place}: {why}")), "{message}");
        assert!(message.contains("lower it, or raise outcome_bytes_max in the store URL"), "{message}");
    }
    let message = refusal("[defaults]\noutcome_bytes_max = 67108865", &[]);
    assert!(
        message.contains("67108864") && message.contains("lower it: the limit of the store is fixed"),
        "{message}"
    );
}

#[cfg(feature = "redis")]
#[test]
fn the_default_limit_of_a_route_is_the_limit_of_its_store() {
    let kept = |config: &Config| -> Vec<_> {
        config.routes.iter().filter_map(|route| route.policy.settings().outcome_bytes_max).collect()
    };
    let routes = "[[route]]\npath = \"/a\"\noutcome_bytes_max = 999\n[[route]]\npath = \"/b\"\n";
    assert_eq!(kept(&loaded(&format!("{NARROW}{routes}"))), [999, 1000, 1000]);
    assert_eq!(kept(&loaded(routes)), [999, 1 << 20, 1 << 20]);
}

#[cfg(feature = "redis")]
#[test]
fn a_reload_validates_routes_against_the_store_in_use() {
    let before = loaded(NARROW);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hapax.toml");
    let wider = NARROW.replace("1000", "2000");
    std::fs::write(&path, format!("{wider}[defaults]\noutcome_bytes_max = 1001\n")).unwrap();
    let flags = Flags::new(Some(path));
    assert!(Config::load(&flags, []).is_ok());
    let refused = before.reload(&flags, []).unwrap_err();
    assert!(refused.text().contains("which is 1000"), "{}", refused.text());
}
