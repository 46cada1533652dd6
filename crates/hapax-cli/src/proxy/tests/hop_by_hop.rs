//! Keys in fields that the client names in `Connection`.

use super::rig::{Origin, Rig};

/// The proxy removes such a field, and the layer sees by `Connection` that it was there.
#[tokio::test]
async fn k_10_a_request_whose_key_field_was_removed_does_not_run() {
    let origin = Origin::ok().await;
    let rig = Rig::in_front_of(&origin).await;
    let long = format!("Connection: {}Idempotency-Key", "x,".repeat(1000));
    let lines: [&[u8]; 7] = [
        b"Connection: close, Idempotency-Key",
        b"Connection: IDEMPOTENCY-key",
        b"Connection: close\r\nConnection: \t Idempotency-Key\t",
        b"Connection: Idempotency-Key\r\nConnection: close",
        b"Connection: \xe9, Idempotency-Key",
        b"Connection: ,,\"a\",Idempotency-Key,",
        long.as_bytes(),
    ];
    for line in lines {
        let head = b"POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\n";
        let answer = rig
            .exchange([head, line, b"\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"].concat())
            .await;
        let line = line.escape_ascii();
        assert!(answer.starts_with("HTTP/1.1 400 "), "{line}: {answer}");
        assert!(answer.contains("/errors/key-invalid\""), "{line}: {answer}");
        assert!(answer.contains("\"safe_new_key\":false"), "{line}: {answer}");
    }
    assert_eq!(origin.log.text(), "");
}
