//! SDKs and the shapes of refusals: each raises the error that its provider documents, with the code of the refusal in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::binary::started;
use crate::fixture::Fixture;
use crate::sidecar::{Message, Origin, Sidecar};
use crate::tools::{self, needs};

/// The routes of each provider. Those without a named shape have a template, as in `docs/guide/http.md`.
const ROUTES: &str = r#"
[[route]]
path = "/v1/**"
dialect = "stripe-v1"

[[route]]
path = "/v2/**"
dialect = "stripe-v2"

[[route]]
path = "/google/**"
refusals = "google"
statuses = { "key-reused" = 400 }

[[route]]
path = "/jsonapi/**"
refusals = "jsonapi"

[[route]]
path = "/resend/**"
statuses = { "key-reused" = 409 }
[route.refusals]
media_type = "application/json"
body = { statusCode = "{status}", name = "{code}", message = "{detail}" }

[[route]]
path = "/svix/**"
statuses = { "key-reused" = 409 }
[route.refusals]
media_type = "application/json"
body = { code = "{code}", detail = "{detail}" }

[[route]]
path = "/payments"
statuses = { "key-reused" = 409 }
[route.refusals]
media_type = "application/json"
[route.refusals.body.error]
type = "invalid_state"
code = "{status}"
message = "{detail}"
request_id = "{operation}"
documentation_url = "{type}"
errors = [{ reason = "{code}", message = "{detail}" }]
"#;

/// For each SDK, the error for a reused key, and for an uncertain outcome.
const NODE: [(&str, &str, &str); 7] = [
    ("stripe for node", "StripeIdempotencyError", "StripeAPIError"),
    ("stripe (v2) for node", "StripeIdempotencyError", "StripeIdempotencyError"),
    ("gaxios for node", "GaxiosError", "GaxiosError"),
    ("kitsu for node", "AxiosError", "AxiosError"),
    ("resend for node", "error", "error"),
    ("svix for node", "ApiException", "ApiException"),
    ("gocardless-nodejs for node", "InvalidStateError", "InvalidStateError"),
];
const PYTHON: [(&str, &str, &str); 7] = [
    ("stripe for python", "IdempotencyError", "APIError"),
    ("stripe (v2) for python", "IdempotencyError", "IdempotencyError"),
    ("google-cloud-core for python", "BadRequest", "BadGateway"),
    ("jsonapi-requests for python", "ApiClientError", "ApiInternalServerError"),
    ("resend for python", "ResendError", "ResendError"),
    ("svix for python", "HttpError", "HttpError"),
    ("gocardless-pro for python", "InvalidStateError", "InvalidStateError"),
];

#[test]
fn e_01_the_sdks_for_node_raise_what_their_providers_document() {
    needs("npm", "nodejs npm");
    let folder =
        installed("node", "package.json", "npm install --no-audit --no-fund --ignore-scripts --silent");
    check(&folder, &["node", "refused.mjs"], NODE);
}

#[test]
fn e_01_the_sdks_for_python_raise_what_their_providers_document() {
    needs("python3", "python3 python3-venv");
    let install = "python3 -m venv .venv && .venv/bin/pip install --quiet --requirement requirements.txt";
    let folder = installed("python", "requirements.txt", install);
    check(&folder, &[".venv/bin/python", "refused.py"], PYTHON);
}

#[track_caller]
fn check<const N: usize>(folder: &Path, typed: &[&str], expected: [(&str, &str, &str); N]) {
    let origin = Origin::start(made);
    let fixture = Fixture::bare();
    fs::write(fixture.path().join("hapax.toml"), ROUTES).unwrap();
    let sidecar = Sidecar::start(&fixture, &["--upstream", &origin.url()]);
    let url = format!("http://{}", sidecar.address());
    let [reused, lost] = ["reused", "lost"].map(|key| {
        let mut command = Command::new(typed[0]);
        command.args(&typed[1..]).args([&url, key]).current_dir(folder);
        let child = started(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    });
    assert_eq!((reused.len(), lost.len()), (N, N), "{reused:#?} {lost:#?}");
    for (((sdk, for_reused, for_lost), reused), lost) in expected.into_iter().zip(&reused).zip(&lost) {
        let fields =
            |error: &Value| ["sdk", "class", "code"].map(|name| error[name].as_str().map(str::to_owned));
        let expected_fields = |class: &str, code: &str| [sdk, class, code].map(|text| Some(text.to_owned()));
        assert_eq!(fields(reused), expected_fields(for_reused, "key-reused"), "{reused}");
        assert_eq!(fields(lost), expected_fields(for_lost, "uncertain"), "{lost}");
        assert_eq!((&reused["after"], &lost["after"]), (&2.into(), &1.into()), "{reused} {lost}");
    }
}

/// The responses of the providers, as far as their SDKs read them. With the key `lost` the connection is closed.
fn made(request: &Message, _number: usize) -> Option<String> {
    if request.header("idempotency-key").is_some_and(|key| key.contains("lost")) {
        return None;
    }
    let path = request.first_line.split(' ').nth(1).unwrap();
    let body = match path.split('/').nth(1).unwrap() {
        "payments" => r#"{"payments":{"id":"PM1"}}"#,
        "jsonapi" => r#"{"data":{"id":"1","type":"orders"}}"#,
        "svix" => {
            r#"{"id":"msg_1","eventType":"order.paid","payload":{},"timestamp":"2026-01-01T00:00:00Z"}"#
        }
        _ => r#"{"id":"1","object":"charge"}"#,
    };
    let length = body.len();
    Some(format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    ))
}

/// A folder with the SDKs of a language in the versions of `list`, and the script that calls them. A marker file contains
/// the list that is installed.
fn installed(language: &str, list: &str, install: &str) -> PathBuf {
    let given = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdks");
    let folder = tools::folder(&format!("sdks-{language}"));
    for entry in fs::read_dir(&given).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
    }
    let (mark, list) = (folder.join("installed"), fs::read_to_string(given.join(list)).unwrap());
    if fs::read_to_string(&mark).ok().as_deref() != Some(&list) {
        let status =
            started(Command::new("bash").args(["-ec", install]).current_dir(&folder)).wait().unwrap();
        assert!(status.success(), "{status}: {install}\nnpmjs.com and pypi.org must be reachable.");
        fs::write(mark, list).unwrap();
    }
    folder
}
