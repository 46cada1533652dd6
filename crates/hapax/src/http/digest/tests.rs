use http::{HeaderMap, HeaderValue};

use super::*;

const BODY: &[u8] = b"{\"hello\": \"world\"}\n";

/// The examples of RFC 9530 for this body.
const SHA_256: &str = "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:";
const SHA_512: &str =
    "sha-512=:YMAam51Jz/jOATT6/zvHrLVgOYTGFy1d6GJiOHTohq4yP+pgk4vf2aCsyRZOtw8MjkM7iw7yZ/WkppmM44T3qg==:";

fn verified(fields: &[(&'static str, &str)], body: &[u8]) -> Result<(), DigestMismatch> {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(*name, HeaderValue::from_str(value).unwrap());
    }
    verify(Fields::of(&headers), body)
}

#[test]
fn f_09_a_digest_is_verified() {
    for field in ["content-digest", "repr-digest"] {
        for value in [
            SHA_256,
            SHA_512,
            &format!("{SHA_256}, {SHA_512}"),
            &format!("{SHA_512},\t{SHA_256}"),
            &SHA_256.replace("Dg=:", "Dg:"),
            &format!("{SHA_256};a;b=1; c=\"x,\\\";y\";d=:YQ==:"),
        ] {
            assert_eq!(verified(&[(field, value)], BODY), Ok(()), "{field}: {value}");
            assert_eq!(verified(&[(field, value)], b"other"), Err(DigestMismatch), "{field}: {value}");
        }
    }
}

#[test]
fn f_09_every_known_digest_must_be_right() {
    let wrong_256 = SHA_256.replace("RK", "RL");
    let wrong_512 = SHA_512.replace("YM", "YN");
    for value in
        [format!("{wrong_256}, {SHA_512}"), format!("{SHA_256}, {wrong_512}"), SHA_256.replace("RK", "")]
    {
        assert_eq!(verified(&[("content-digest", &value)], BODY), Err(DigestMismatch), "{value}");
    }
    assert_eq!(
        verified(&[("content-digest", SHA_256), ("repr-digest", &wrong_256)], BODY),
        Err(DigestMismatch)
    );
    let lines = [("content-digest", SHA_256), ("content-digest", &*wrong_512)];
    assert_eq!(verified(&lines, BODY), Err(DigestMismatch), "two lines are one field");
    let twice = format!("{wrong_256}, {SHA_256}");
    assert_eq!(verified(&[("content-digest", &twice)], BODY), Ok(()), "the last of equal names counts");
}

#[test]
fn f_09_unknown_digests_are_ignored() {
    for value in ["", "md5=:AAAA:", "unixsum=:AQ==:, sha=::", "sha-256x=:AAAA:"] {
        assert_eq!(verified(&[("content-digest", value)], BODY), Ok(()), "{value}");
    }
    assert_eq!(verified(&[], BODY), Ok(()));
    assert_eq!(verified(&[("content-digest", &format!("md5=:AAAA:, {SHA_256}"))], b""), Err(DigestMismatch));
}

#[test]
fn f_09_an_invalid_field_is_a_mismatch() {
    let bare = SHA_256.trim_end_matches(':');
    for value in [
        "sha-256",
        "sha-256=",
        "sha-256=1",
        "md5=\"AAAA\"",
        "md5=?1",
        "MD5=:AAAA:",
        "=:AAAA:",
        "1=:AAAA:",
        "md5=:AA_A:",
        "md5=:AA=A:",
        "md5=:A===:",
        "md5=:AA A:",
        ",",
        bare,
        &format!("{SHA_256},"),
        &format!("{SHA_256} {SHA_512}"),
        &format!("{SHA_256};"),
        &format!("{SHA_256};a="),
        &format!("{SHA_256};a=\"x"),
        &format!("{SHA_256};A=1"),
        &format!("{SHA_256}x"),
    ] {
        assert_eq!(verified(&[("content-digest", value)], BODY), Err(DigestMismatch), "{value}");
    }
}

#[test]
fn f_09_a_representation_digest_counts_only_for_complete_unencoded_bodies() {
    let wrong = ("repr-digest", "sha-256=:AAAA:");
    assert_eq!(verified(&[wrong, ("content-encoding", "gzip")], BODY), Ok(()));
    assert_eq!(verified(&[wrong, ("content-range", "bytes 0-18/100")], BODY), Ok(()));
    assert_eq!(verified(&[wrong, ("content-encoding", "identity")], BODY), Err(DigestMismatch));
    let content = ("content-digest", "sha-256=:AAAA:");
    assert_eq!(verified(&[content, ("content-encoding", "gzip")], BODY), Err(DigestMismatch));
}

#[test]
fn f_09_base64_is_that_of_rfc_4648() {
    let table =
        [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("fooba", "Zm9vYmE")];
    for (bytes, text) in table {
        assert_eq!(unpadded_base64(bytes.as_bytes()), text.as_bytes());
    }
}
