//! The configuration of commands: file, environment and flags.

use crate::binary::{command, hapax, run};
use crate::fixture::{DAY, Fixture, HOUR};
use crate::sidecar::Sidecar;

const FILE: &str = r#"
upstream = "http://127.0.0.1:3000"

[defaults]
principal = "header:X-Tenant"
principal_verified = true
anonymous = "refuse"

[[route]]
path = "/v1/payments/**"
key = "required"
on_store_error = "pass"
reconcile = "http://127.0.0.1:3000/did-it-happen"
"#;

fn with_file(fixture: &Fixture, text: &str) {
    std::fs::write(fixture.path().join("hapax.toml"), text).unwrap();
}

#[test]
fn a_check_prints_the_policy_and_warnings() {
    let fixture = Fixture::empty();
    with_file(&fixture, FILE);
    let text = hapax(fixture.path(), &["check"]).ended(0).stdout;
    for part in [
        "file     hapax.toml",
        "upstream http://127.0.0.1:3000/",
        "covered  PATH             METHODS         KEY       CASE\n",
        "         /v1/payments/**  POST PUT PATCH  required  exact\n",
        "         other paths      POST PUT PATCH  optional  exact\n",
        "         methods that are not listed pass as they are, with or without a key\n",
        "route    /v1/payments/**\n",
        "         key = \"required\"",
        "         reconcile = \"http://127.0.0.1:3000/did-it-happen\"",
        "route    /**\n",
        "promise  at most once",
        "warning  /v1/payments/**: on_store_error = \"pass\"",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert_eq!(text.matches("warning").count(), 1, "{text}");
    let document = hapax(fixture.path(), &["check", "--json"]).ended(0).json();
    assert_eq!(document["config"]["routes"][0]["settings"]["key"], "required");
    assert_eq!(document["config"]["routes"][1]["settings"]["anonymous"], "refuse");
    assert_eq!(document["warnings"].as_array().unwrap().len(), 1);
}

#[test]
fn a_missing_store_is_no_error_if_a_sidecar_is_configured() {
    let fixture = Fixture::bare();
    with_file(&fixture, FILE);
    let text = hapax(fixture.path(), &["check"]).ended(0).stdout;
    assert!(text.contains("there is no store at file:./hapax-data yet"), "{text}");
    assert!(!fixture.store().exists());
}

#[test]
fn the_default_file_is_read_unless_another_one_is_named() {
    let fixture = Fixture::empty();
    std::fs::write(fixture.path().join("other.toml"), "[store]\nurl = \"memory:\"").unwrap();
    let kind = |args: &[&str]| hapax(fixture.path(), args).ended(0).json()["store"]["kind"].clone();
    assert_eq!(kind(&["check", "--json"]), "file");
    assert_eq!(kind(&["check", "--json", "--config", "other.toml"]), "memory");
    with_file(&fixture, "[store]\nurl = \"memory:\"");
    assert_eq!(kind(&["check", "--json"]), "memory");
    assert_eq!(kind(&["check", "--json", "--store", "file:hapax-data"]), "file");
    let by_variable =
        run(command(fixture.path()).env("HAPAX_CONFIG", "other.toml").args(["check", "--json"]));
    assert_eq!(by_variable.ended(0).json()["store"]["kind"], "memory");
}

#[test]
fn commands_on_records_use_the_store_of_the_file() {
    let fixture = Fixture::prepared(HOUR, async |prepare| {
        prepare.completed("a", DAY).await;
    });
    std::fs::rename(fixture.store(), fixture.path().join("elsewhere")).unwrap();
    with_file(&fixture, "[store]\nurl = \"file:elsewhere\"");
    let listed = hapax(fixture.path(), &["records", "list", "--json"]).ended(0).json();
    assert_eq!(listed["records"].as_array().unwrap().len(), 1);
}

#[test]
fn an_invalid_file_is_an_error_with_its_location() {
    let fixture = Fixture::empty();
    with_file(&fixture, "[defaults]\nretenton = \"1h\"");
    for args in [&["check"][..], &["records", "list"], &["sweep"]] {
        let refused = hapax(fixture.path(), args).failed(2, "config-invalid");
        assert!(refused.stderr.contains("hapax.toml:2:1: "), "{refused:?}");
        assert!(refused.stderr.contains("did you mean `retention`?"), "{refused:?}");
    }
    // A store that is given as a flag is used without reading the file.
    hapax(fixture.path(), &["records", "list", "--store", "file:hapax-data"]).ended(0);
    let missing = hapax(fixture.path(), &["check", "--config", "missing.toml"]).failed(2, "config-invalid");
    assert!(missing.stderr.contains("cannot read missing.toml"), "{missing:?}");
    std::fs::remove_file(fixture.path().join("hapax.toml")).unwrap();
    let refused = run(command(fixture.path()).env("HAPAX_STOR_URL", "x").arg("check"));
    assert!(refused.failed(2, "config-invalid").stderr.contains("did you mean HAPAX_STORE_URL?"));
}

#[test]
fn a_route_limit_above_the_limit_of_the_store_is_refused() {
    let fixture = Fixture::bare();
    with_file(&fixture, &format!("{FILE}outcome_bytes_max = 67108865\n"));
    for args in [&["check"][..], &["serve"]] {
        let stderr = hapax(fixture.path(), args).failed(2, "config-invalid").stderr;
        let why =
            "`outcome_bytes_max`: 67108865 is more than the limit of file:./hapax-data, which is 67108864";
        assert!(stderr.contains(why) && stderr.contains("lower it"), "{stderr}");
        assert!(!fixture.store().exists());
    }
}

#[test]
fn the_schema_and_the_options_are_printed_without_a_store() {
    let fixture = Fixture::bare();
    let schema = hapax(fixture.path(), &["check", "--schema"]).ended(0).json();
    assert_eq!(schema["title"], "hapax.toml");
    let options = hapax(fixture.path(), &["check", "--options"]).ended(0).stdout;
    assert!(options.contains("| `url` | `HAPAX_STORE_URL` | `\"file:./hapax-data\"` |"), "{options}");
}

#[test]
fn sidecars_and_commands_look_for_a_token_in_the_same_order() {
    let fixture = Fixture::bare();
    let (right, wrong) = ("the-right-token-0123", "another-token-0123456");
    for (name, token) in [("right", right), ("wrong", wrong)] {
        std::fs::write(fixture.path().join(name), token).unwrap();
    }
    with_file(&fixture, "upstream = \"http://127.0.0.1:9\"\n[admin]\ntoken_file = \"wrong\"");
    let mut serve = command(fixture.path());
    serve.args(["serve", "--json", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    let sidecar = Sidecar::spawn(serve.args(["--admin-token-file", "right"]).env("HAPAX_ADMIN_TOKEN", wrong));
    let url = format!("http://{}", sidecar.admin());
    with_file(&fixture, "[admin]\ntoken_file = \"right\"");
    for (flag, variable, is_taken) in [
        (None, None, true),
        (None, Some(wrong), false),
        (None, Some(right), true),
        (Some("right"), Some(wrong), true),
        (Some("wrong"), Some(right), false),
    ] {
        let mut list = command(fixture.path());
        list.args(["records", "list", "--admin", &url]);
        list.args(flag.map(|file| ["--admin-token-file", file]).into_iter().flatten());
        let listed = run(list.envs(variable.map(|token| ("HAPAX_ADMIN_TOKEN", token))));
        match is_taken {
            true => listed.ended(0),
            false => listed.failed(2, "token-invalid"),
        };
    }
}
