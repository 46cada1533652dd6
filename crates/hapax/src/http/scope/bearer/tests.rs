use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hapax_core::JsonPointer;
use http::header::{AUTHORIZATION, HeaderMap};

use super::{CREDENTIAL_BYTES_MAX, base64url, claim};

fn jwt(payload: &str) -> String {
    format!("e30.{}.c2ln", BASE64_URL_SAFE_NO_PAD.encode(payload))
}

fn claim_in(lines: &[String]) -> Option<String> {
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(AUTHORIZATION, line.parse().unwrap());
    }
    claim(&headers, &JsonPointer::member("sub"))
}

#[test]
fn s_02_a_claim_is_read_from_a_bearers_payload() {
    for scheme in ["Bearer", "bearer", "BEARER", "Bearer "] {
        let line = format!("{scheme} {}", jwt(r#"{"iss": "i", "sub": "alice"}"#));
        assert_eq!(claim_in(&[line]).as_deref(), Some("alice"), "{scheme}");
    }
}

#[test]
fn s_02_malformed_tokens_have_no_claim() {
    let alice = r#"{"sub": "alice"}"#;
    let encoded = BASE64_URL_SAFE_NO_PAD.encode(alice);
    let long = format!(r#"{{"sub": "alice", "more": "{}"}}"#, "x".repeat(CREDENTIAL_BYTES_MAX));
    let cases: Vec<Vec<String>> = vec![
        vec![],
        vec!["Bearer".to_owned()],
        vec!["Bearer ".to_owned()],
        vec![format!("Basic {}", jwt(alice))],
        vec![jwt(alice)],
        vec![format!("Bearer {}", jwt(alice)), format!("Bearer {}", jwt(alice))],
        vec![format!("Bearer e30.{encoded}")],
        vec![format!("Bearer e30.{encoded}.a.b.c")],
        vec![format!("Bearer e30.{encoded}=.c2ln")],
        vec!["Bearer e30.!!!!.c2ln".to_owned()],
        vec![format!("Bearer {}", jwt("{}"))],
        vec![format!("Bearer {}", jwt(r#"{"sub": ""}"#))],
        vec![format!("Bearer {}", jwt(r#"{"sub": 7}"#))],
        vec![format!("Bearer {}", jwt(r#"{"sub": "\u0000alice"}"#))],
        vec![format!("Bearer {}", jwt(r#"{"sub": "alice", "sub": "bob"}"#))],
        vec![format!("Bearer {}", jwt(r#"{"sub": "alice""#))],
        vec![format!("Bearer {}", jwt(&long))],
    ];
    for lines in cases {
        assert_eq!(claim_in(&lines), None, "{lines:?}");
    }
}

#[test]
fn base_64_agrees_with_the_crate() {
    let bytes: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
    for length in 0..bytes.len() {
        let spelled = BASE64_URL_SAFE_NO_PAD.encode(&bytes[..length]);
        assert_eq!(base64url(&spelled).as_deref(), Some(&bytes[..length]), "{length}");
    }
    for text in ["A", "AAAAA", "AB", "AAB", "+A==", "/w", "QQ==", "Ä", "A A", "A\n"] {
        assert_eq!(base64url(text), None, "{text}");
        assert!(BASE64_URL_SAFE_NO_PAD.decode(text).is_err(), "{text}");
    }
}
