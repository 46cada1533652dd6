use std::collections::HashMap;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::{Ambient, profile};
use crate::credentials::{Credentials, CredentialsSource};

fn ambient(variables: &[(&str, &str)]) -> Ambient {
    let variables: HashMap<String, String> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Ambient::new(move |name| variables.get(name).cloned())
}

#[tokio::test]
async fn the_environment_comes_first() {
    let long_lived = [("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "canary-secret")];
    let found = ambient(&long_lived).credentials().await.unwrap();
    assert_eq!(found, Credentials::new("key", "canary-secret"));
    let temporary = [&long_lived[..], &[("AWS_SESSION_TOKEN", "canary-token")]].concat();
    let found = ambient(&temporary).credentials().await.unwrap();
    assert_eq!(found, Credentials::new("key", "canary-secret").with_session_token("canary-token"));
    assert!(!format!("{found:?}").contains("canary"));
    let half = ambient(&long_lived[..1]).credentials().await.unwrap_err();
    assert!(half.to_string().contains("AWS_SECRET_ACCESS_KEY"), "{half}");
}

#[test]
fn a_profile_is_read_and_no_other() {
    let text = "[default]\naws_access_key_id = first\naws_secret_access_key=one\n\n# mine\n[shop]\n\
                aws_access_key_id=second\naws_secret_access_key = two\naws_session_token = token\n[half]\naws_access_key_id = third\n";
    assert_eq!(profile(text, "default"), Some(Credentials::new("first", "one")));
    assert_eq!(profile(text, "shop"), Some(Credentials::new("second", "two").with_session_token("token")));
    assert_eq!(profile(text, "half"), None);
    assert_eq!(profile(text, "other"), None);
}

#[tokio::test]
async fn a_container_is_asked_with_its_token_and_only_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/credentials", listener.local_addr().unwrap());
    let served = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 4096];
        let read = stream.read(&mut request).await.unwrap();
        let body = r#"{"AccessKeyId": "key", "SecretAccessKey": "secret", "Token": "token", "Expiration": "2026-11-15T21:00:00Z"}"#;
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8(request[..read].to_vec()).unwrap()
    });
    let container = ambient(&[
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &url),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "pass"),
    ]);
    for _asked_or_kept in 0..2 {
        let found = container.credentials().await.unwrap();
        assert_eq!(found, Credentials::new("key", "secret").with_session_token("token"));
    }
    let request = served.await.unwrap();
    assert!(request.starts_with("GET /credentials HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("authorization: pass\r\n"), "{request}");
}

#[tokio::test]
async fn nothing_anywhere_is_told() {
    let none = ambient(&[("AWS_EC2_METADATA_DISABLED", "true")]).credentials().await.unwrap_err();
    assert!(none.to_string().contains("neither"), "{none}");
}
