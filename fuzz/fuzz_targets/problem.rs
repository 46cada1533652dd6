//! Refusals: valid JSON and valid header fields for every detail and every configuration of a route.

#![no_main]

use std::time::Duration;

use hapax::http::{Code, fuzzing};
use libfuzzer_sys::fuzz_target;

// A byte for the code, one for the wait, and text for the detail and the prefix of the type.
fuzz_target!(|input: &[u8]| {
    let [code, wait, text @ ..] = input else { return };
    let code = Code::ALL[usize::from(*code) % Code::ALL.len()];
    let text = String::from_utf8_lossy(text);
    let wait = (*wait > 0).then(|| Duration::from_millis(1 << (wait % 64)));
    let [response, grpc] = fuzzing::problem(code, text.clone().into_owned(), &text, wait);

    let body: serde_json::Value = serde_json::from_slice(response.body()).expect("a problem is JSON");
    assert_eq!(body["detail"], *text);
    assert_eq!(body["status"], response.status().as_u16());
    assert_eq!(body["type"], format!("{text}{}", code.name()));
    let status = grpc.headers().get("grpc-status").map(|status| status.as_bytes());
    assert_eq!(status, Some(code.grpc().to_string().as_bytes()));
});
