//! `hapax records --admin` through a TLS-terminating proxy in front of the admin listener. The proxy is another sidecar.

use std::path::Path;

use crate::binary::{Run, command, run};
use crate::fixture::{Fixture, HOUR};
use crate::sidecar::{Origin, Sidecar, reply};

fn pem(name: &str) -> String {
    let pem = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hapax-proxy/tests/it/pem").join(name);
    pem.to_str().unwrap().to_owned()
}

/// Lists uncertain records, trusting the certificate authority in this file.
fn list(fixture: &Fixture, url: &str, token: &str, trusted: &str) -> Run {
    let mut typed = command(fixture.path());
    typed.args(["records", "list", "--state", "uncertain", "--json", "--admin", url]);
    run(typed.env("HAPAX_ADMIN_TOKEN", token).env("SSL_CERT_FILE", pem(trusted)))
}

#[test]
fn records_are_listed_over_tls_if_the_certificate_is_trusted() {
    let fixture = Fixture::prepared(HOUR, async |prepare| {
        prepare.uncertain("a").await;
    });
    let origin = Origin::start(|_, _| reply(200, "done"));
    let sidecar = Sidecar::start(&fixture, &["--upstream", &origin.url()]);
    let in_front = Fixture::bare();
    let file = format!("[tls]\ncertificate = \"{}\"\nkey = \"{}\"\n", pem("first.pem"), pem("first.key"));
    std::fs::write(in_front.path().join("hapax.toml"), file).unwrap();
    let proxy = Sidecar::start(&in_front, &["--upstream", &format!("http://{}", sidecar.admin())]);
    let (url, token) = (proxy.start["listen"].as_str().unwrap(), sidecar.start["token"].as_str().unwrap());
    assert!(url.starts_with("https://"), "{url}");

    let listed = list(&in_front, url, token, "ca.pem").ended(0).json();
    assert_eq!(listed["records"].as_array().map(Vec::len), Some(1), "{listed}");
    // Another certificate authority.
    let refused = list(&in_front, url, token, "second.pem").ended(5);
    for part in ["admin-unavailable", "SSL_CERT_FILE"] {
        assert!(refused.stderr.contains(part), "{refused:?}");
    }
}
