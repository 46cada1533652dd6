use super::*;

#[test]
fn only_urls_of_a_listener_are_taken() {
    for (url, expected) in [
        ("http://127.0.0.1:8081", true),
        ("http://localhost:8081/", true),
        ("http://[::1]:8081", true),
        ("127.0.0.1:8081", false),
        ("https://127.0.0.1:8081", true),
        ("ftp://127.0.0.1:8081", false),
        ("http://127.0.0.1:8081/api", false),
        ("file:./hapax-data", false),
        ("", false),
    ] {
        assert_eq!(AdminClient::new(url, Token::random()).is_ok(), expected, "{url}");
    }
}

#[test]
fn a_code_that_is_not_known_is_told_all_the_same() {
    let problem = Problem {
        kind: "https://hapax.dev/errors/from-the-future".to_owned(),
        title: String::new(),
        status: 418,
        detail: "something new".to_owned(),
        causes: Vec::new(),
        hint: None,
    };
    let failure = told(problem);
    assert_eq!((failure.code(), failure.message()), (Code::Failed, "something new"));
    assert!(failure.causes().next().unwrap().ends_with("from-the-future"));
}
