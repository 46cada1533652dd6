//! `hapax check`.

use crate::binary::{command, hapax, hapax_with_store, run};
use crate::fixture::{DAY, Fixture, HOUR};
#[cfg(target_os = "linux")]
use crate::sidecar::Sidecar;

#[test]
fn a_check_prints_the_promise_and_the_counts_of_a_store() {
    let fixture = Fixture::prepared(HOUR, async |prepare| {
        prepare.completed("a", DAY).await;
        prepare.uncertain("b").await;
    });
    let text = hapax(fixture.path(), &["check"]).ended(0).stdout;
    assert!(text.contains("promise  at most once"), "{text}");
    assert!(
        text.contains("records  2 (in_progress 0, completed 1, failed 0, uncertain 1, released 0)"),
        "{text}"
    );
    assert!(text.contains("1 uncertain record(s)"), "{text}");
    assert!(text.ends_with("ok\n"), "{text}");
    let document = hapax(fixture.path(), &["check", "--json"]).ended(0).json();
    assert_eq!(document["store"]["kind"], "file");
    assert_eq!(document["store"]["url"], "file:./hapax-data");
    assert_eq!(document["records"], 2);
    assert_eq!(document["states"]["uncertain"], 1);
}

#[test]
fn a_memory_store_is_warned_about() {
    let fixture = Fixture::bare();
    let text = hapax(fixture.path(), &["check", "--store", "memory:"]).ended(0).stdout;
    assert!(text.contains("one living process"), "{text}");
    assert!(text.contains("warning  store: memory: loses all records"), "{text}");
}

#[test]
fn a_store_that_is_in_use_can_be_checked() {
    let fixture = Fixture::empty();
    let held = fixture.open();
    hapax(fixture.path(), &["check"]).ended(0);
    drop(held);
}

#[test]
fn a_missing_store_is_not_created() {
    let fixture = Fixture::bare();
    for command in [&["check"][..], &["records", "list"], &["sweep"]] {
        let run = hapax(fixture.path(), command).failed(5, "store-missing");
        assert!(run.stderr.contains("file:./hapax-data"), "{run:?}");
    }
    assert!(!fixture.store().exists());
    // A directory with other files is not turned into a store either.
    std::fs::create_dir(fixture.store()).unwrap();
    hapax(fixture.path(), &["sweep"]).failed(5, "store-missing");
    assert_eq!(std::fs::read_dir(fixture.store()).unwrap().count(), 0);
}

#[test]
fn a_file_instead_of_a_directory_is_refused() {
    let fixture = Fixture::bare();
    std::fs::write(fixture.store(), "not a directory").unwrap();
    let run = hapax(fixture.path(), &["check"]).failed(5, "store-unavailable");
    assert!(run.stderr.contains("is not a directory"), "{run:?}");
    assert_eq!(std::fs::read_to_string(fixture.store()).unwrap(), "not a directory");
}

#[test]
fn a_damaged_file_is_refused_and_unchanged() {
    let fixture = Fixture::empty();
    std::fs::write(fixture.database(), "not a database ".repeat(100)).unwrap();
    for command in [&["check"][..], &["records", "list"], &["sweep"]] {
        hapax(fixture.path(), command).failed(5, "store-incompatible");
    }
    assert!(std::fs::read_to_string(fixture.database()).unwrap().starts_with("not a database"));
}

#[test]
fn a_store_of_a_newer_version_is_refused_and_unchanged() {
    let fixture = Fixture::empty();
    let mut bytes = std::fs::read(fixture.database()).unwrap();
    // The user version of the SQLite database.
    bytes[60..64].copy_from_slice(&999_u32.to_be_bytes());
    std::fs::write(fixture.database(), &bytes).unwrap();
    for command in [&["check"][..], &["records", "list"], &["sweep"]] {
        let run = hapax(fixture.path(), command).failed(5, "store-incompatible");
        assert!(run.stderr.contains("version 999"), "{run:?}");
    }
    assert_eq!(std::fs::read(fixture.database()).unwrap(), bytes);
}

#[test]
fn a_flag_takes_precedence_over_the_store_of_the_environment() {
    let fixture = Fixture::empty();
    let document = hapax_with_store(fixture.path(), "memory:", &["check", "--json"]).ended(0).json();
    assert_eq!(document["store"]["kind"], "memory");
    let args = ["check", "--json", "--store", "file:hapax-data"];
    let document = hapax_with_store(fixture.path(), "memory:", &args).ended(0).json();
    assert_eq!(document["store"]["kind"], "file");
}

#[test]
fn a_deep_check_finds_damage_that_a_quick_one_misses() {
    let fixture = Fixture::prepared(HOUR, async |prepare| {
        prepare.completed("a", DAY).await;
    });
    assert!(hapax(fixture.path(), &["check", "--deep"]).ended(0).stdout.ends_with("ok\n"));
    fixture.damage_records();
    hapax(fixture.path(), &["check"]).ended(0);
    let run = hapax(fixture.path(), &["check", "--deep"]).failed(5, "store-damaged");
    assert!(run.stderr.contains("because: record ") && run.stderr.contains("what to do: "), "{run:?}");
}

#[test]
fn a_sound_store_has_no_warnings() {
    let fixture = Fixture::empty();
    let checked = run(command(fixture.path()).arg("check").envs([
        ("HAPAX_DEFAULTS_PRINCIPAL", "header:X-Tenant"),
        ("HAPAX_DEFAULTS_PRINCIPAL_VERIFIED", "true"),
        ("HAPAX_DEFAULTS_ANONYMOUS", "refuse"),
    ]))
    .ended(0);
    assert!(!checked.stdout.contains("warning"), "{checked:?}");
}

#[test]
fn without_a_file_policy_and_warnings_are_printed() {
    let fixture = Fixture::bare();
    let mut typed = command(fixture.path());
    for (name, value) in [
        ("HAPAX_UPSTREAM", "http://127.0.0.1:3000,http://10.0.0.7,http://10.0.0.8"),
        ("HAPAX_LISTEN", "0.0.0.0:8080"),
        ("HAPAX_TRANSPORT_TRUST_FORWARDED", "true"),
        ("HAPAX_TRANSPORT_BODY_RATE_MIN", "0"),
        ("HAPAX_UPSTREAM_OPTIONS_CONNECTIONS_MAX", "0"),
        ("HAPAX_TRACE_ENDPOINT", "http://collector:4318"),
        ("HAPAX_DEFAULTS_ON_LAPSE", "rerun"),
    ] {
        typed.env(name, value);
    }
    let text = run(typed.arg("check")).ended(0).stdout;
    for part in [
        "listen   0.0.0.0:8080\n",
        "upstream http://10.0.0.8/\n",
        "audit    ./hapax-data\n",
        "route    /**\n",
        "warning  listen: 0.0.0.0:8080",
        "warning  upstream: http://10.0.0.7/ is on another machine",
        "warning  upstream: http://10.0.0.8/ is on another machine",
        "warning  trace: http://collector:4318/ is on another machine",
        "warning  transport: trust_forwarded",
        "warning  transport: body_rate_min = 0",
        "warning  upstream_options: connections_max = 0",
        "warning  /**: on_lapse = \"rerun\"",
        "warning  there is no store at file:./hapax-data yet",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(!text.contains("127.0.0.1:3000/ is"), "{text}");
}

#[test]
fn a_missing_upstream_is_reported_with_a_hint() {
    let fixture = Fixture::empty();
    let needed =
        "`hapax serve` needs one: --upstream http://HOST:PORT, HAPAX_UPSTREAM or `upstream` in the file";
    let text = hapax(fixture.path(), &["check"]).ended(0).stdout;
    assert!(text.contains(&format!("upstream none; {needed}\n")), "{text}");
    std::fs::write(fixture.path().join("hapax.toml"), "").unwrap();
    let text = hapax(fixture.path(), &["check"]).ended(0).stdout;
    assert!(text.contains("upstream none\n"), "{text}");
    assert!(text.contains(&format!("warning  no upstream configured; {needed}\n")), "{text}");
    std::fs::write(fixture.path().join("hapax.toml"), "upstream = \"http://127.0.0.1:3000\"").unwrap();
    let text = hapax(fixture.path(), &["check"]).ended(0).stdout;
    assert!(!text.contains("upstream none") && !text.contains(needed), "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_store_on_tmpfs_is_best_effort_at_the_start_and_in_every_check() {
    let fixture = Fixture::on_tmpfs();
    let mut sidecar = Sidecar::start(&fixture, &["--upstream", "http://127.0.0.1:9"]);
    let logged = sidecar.logged("the promise of");
    assert!(logged.contains("WARN") && logged.contains("file:./hapax-data: best effort"), "{logged}");
    assert!(logged.contains("tmpfs") && !logged.contains("at most once"), "{logged}");
    let promised = sidecar.start["promise"].as_str().unwrap();
    assert!(promised.starts_with("best effort"), "{promised}");
    let is_best_effort = |checked: &str| {
        assert!(checked.contains("promise  best effort") && checked.contains("lies on tmpfs"), "{checked}");
        assert!(!checked.contains("at most once"), "{checked}");
    };
    // With an owner, and without one.
    is_best_effort(&hapax(fixture.path(), &["check"]).ended(0).stdout);
    sidecar.signal("TERM");
    assert_eq!(sidecar.ended().0, Some(0));
    is_best_effort(&hapax(fixture.path(), &["check", "--deep"]).ended(0).stdout);
    let document = hapax(fixture.path(), &["check", "--json"]).ended(0).json();
    assert!(document["promise"].as_str().unwrap().starts_with("best effort"), "{document}");
}

#[test]
fn files_that_serving_needs_are_opened() {
    let fixture = Fixture::empty();
    for (name, code, variables) in [
        ("token-invalid", 2, &[("HAPAX_ADMIN_TOKEN_FILE", "missing")][..]),
        ("token-invalid", 2, &[("HAPAX_ADMIN_TOKEN", "short")]),
        ("input-invalid", 2, &[("HAPAX_TLS_CERTIFICATE", "missing.pem"), ("HAPAX_TLS_KEY", "missing.key")]),
        (
            "input-invalid",
            2,
            &[("HAPAX_UPSTREAM_OPTIONS_CA_FILE", "missing.pem"), ("HAPAX_UPSTREAM", "https://10.0.0.7")],
        ),
    ] {
        let mut typed = command(fixture.path());
        let refused = run(typed.envs(variables.iter().copied()).arg("check")).failed(code, name);
        assert!(refused.stderr.contains("missing") || refused.stderr.contains("token of 5"), "{refused:?}");
    }
}
