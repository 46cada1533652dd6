use super::*;

#[test]
fn a_token_equals_only_itself() {
    let token = Token::new("0123456789abcdef").unwrap();
    assert!(token.is(b"0123456789abcdef"));
    for other in ["", "0123456789abcde", "0123456789abcdeg", "0123456789abcdef0", "1123456789abcdef"] {
        assert!(!token.is(other.as_bytes()), "{other:?}");
    }
}

#[test]
fn a_token_that_is_short_or_unprintable_is_refused() {
    for invalid in
        ["", "short", "fifteen-letters", "sixteen letters too", "sixteen-létters-too", &"x".repeat(513)]
    {
        assert_eq!(Token::new(invalid).unwrap_err().code(), Code::TokenInvalid, "{invalid:?}");
    }
}

#[test]
fn a_token_file_may_end_with_a_line_break() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    std::fs::write(&file, "0123456789abcdef\n").unwrap();
    assert!(Token::read(&file).unwrap().is(b"0123456789abcdef"));
    assert_eq!(Token::read(&dir.path().join("none")).unwrap_err().code(), Code::TokenInvalid);
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_not_utf_8_is_refused() {
    use std::os::unix::ffi::OsStrExt as _;
    assert!(Token::from_variable(OsStr::new("0123456789abcdef")).unwrap().is(b"0123456789abcdef"));
    let refused = Token::from_variable(OsStr::from_bytes(b"0123456789abcdef\xff")).unwrap_err();
    assert_eq!(refused.code(), Code::TokenInvalid);
    assert!(!refused.text().contains("0123456789"), "{}", refused.text());
}

#[test]
fn generated_tokens_differ_and_are_valid() {
    let (one, two) = (Token::random(), Token::random());
    assert_eq!(one.reveal().len(), 22);
    assert!(!one.is(two.reveal().as_bytes()));
    assert!(Token::new(one.reveal()).unwrap().is(one.reveal().as_bytes()));
}

#[test]
fn a_token_is_in_no_debug_output() {
    let token = Token::random();
    assert!(!format!("{token:?}").contains(token.reveal()));
}
