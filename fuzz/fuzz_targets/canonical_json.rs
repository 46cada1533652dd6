//! JSON parts of fingerprints: equal values have equal fingerprints in every form, and different values do not.

#![no_main]

use hapax_core::Fingerprint;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if !is_json(input) {
        return;
    }
    let syntax = serde_json::from_slice::<serde::de::IgnoredAny>(input);
    assert!(syntax.is_ok(), "serde_json refuses this text");
    assert_eq!(json(input), json(&respelled(input)));

    // One level deeper may exceed the depth limit.
    let (first, last) = (member_first(input), member_last(input));
    if is_json(&first) {
        assert_eq!(json(&first), json(&last), "the order of members does not count");
        assert_ne!(json(&first), json(input));
    }
});

fn json(text: &[u8]) -> Fingerprint {
    Fingerprint::builder().json("body", text).build()
}

/// A text without canonical form is hashed verbatim; the kind of a part is hashed with it.
fn is_json(text: &[u8]) -> bool {
    json(text) != Fingerprint::builder().part("body", text).build()
}

fn member_first(value: &[u8]) -> Vec<u8> {
    [br#"{"value":"#, value, br#","other":[]}"#].concat()
}

fn member_last(value: &[u8]) -> Vec<u8> {
    [br#"{"other":[],"value":"#, value, b"}"].concat()
}

/// The same value with whitespace around every token, and every letter and digit in strings escaped.
fn respelled(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() * 2);
    let mut in_string = false;
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        rest = after;
        match byte {
            b'"' => {
                in_string = !in_string;
                out.push(b'"');
            }
            b'\\' => {
                // `\u` and its four digits stay together.
                let length = if after.first() == Some(&b'u') { 5 } else { 1 };
                let (escape, after) = after.split_at(length);
                out.push(b'\\');
                out.extend_from_slice(escape);
                rest = after;
            }
            _ if in_string && byte.is_ascii_alphanumeric() => {
                out.extend_from_slice(format!("\\u{byte:04X}").as_bytes());
            }
            b'{' | b'}' | b'[' | b']' | b':' | b',' if !in_string => {
                out.extend_from_slice(&[b'\n', *byte, b'\t', b' ']);
            }
            _ => out.push(*byte),
        }
    }
    out
}
