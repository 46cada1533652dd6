use super::*;

fn reconciled(text: &str) -> Result<Reconciled<Response<Bytes>>, ()> {
    serde_json::from_str::<ReconcileResponse>(text).map_err(|_| ())?.reconciled()
}

#[test]
fn a_complete_response_settles_the_record() {
    let applied = r#"{ "applied": true, "status": 201, "headers": { "x-a": "b" }, "body": { "id": 7 } }"#;
    let Ok(Reconciled::Applied(response)) = reconciled(applied) else { panic!("not applied") };
    assert_eq!(
        (response.status().as_u16(), &response.headers()["x-a"]),
        (201, &HeaderValue::from_static("b"))
    );
    assert_eq!(response.body(), "{\"id\":7}");
    let bytes = r#"{ "applied": true, "status": 200, "body_base64": "AP8=" }"#;
    let Ok(Reconciled::Applied(response)) = reconciled(bytes) else { panic!("not applied") };
    assert_eq!(response.body().as_ref(), [0, 255]);
    assert!(matches!(reconciled(r#"{ "applied": false }"#), Ok(Reconciled::NotApplied)));
    assert!(matches!(reconciled(r#"{ "applied": null }"#), Ok(Reconciled::Unknown)));
}

#[test]
fn an_incomplete_response_settles_nothing() {
    for text in [
        "",
        "{}]",
        "<html>",
        "false",
        r#"{ "applied": "false" }"#,
        r#"{ "applied": 0 }"#,
        r#"{ "applied": true }"#,
        r#"{ "applied": true, "status": 99 }"#,
        r#"{ "applied": true, "status": 101 }"#,
        r#"{ "applied": false, "status": 404 }"#,
        r#"{ "applied": true, "status": 200, "headers": { "a b": "c" } }"#,
        r#"{ "applied": true, "status": 200, "headers": { "a": "c\nd" } }"#,
        r#"{ "applied": true, "status": 200, "body": "a", "body_base64": "AA==" }"#,
        r#"{ "applied": true, "status": 200, "body_base64": "!" }"#,
        r#"{ "applied": false, "error": "no such operation" }"#,
    ] {
        assert!(reconciled(text).is_err(), "{text}");
    }
    // A missing member does not mean `false`.
    assert!(matches!(reconciled("{}"), Ok(Reconciled::Unknown)));
}

#[test]
fn an_authorise_request_has_the_head_without_fields_of_body_connection_and_key() {
    let head = Request::builder()
        .method("POST")
        .uri("http://outside/v1/orders?a=b")
        .header("authorization", "Bearer canary")
        .header("cookie", "a=b")
        .header("content-length", "5")
        .header("transfer-encoding", "chunked")
        .header("idempotency-key", "canary-key")
        .header("x-request-key", "canary-key")
        .header("x-alias", "canary-key")
        .header("connection", "close, X-Hop")
        .header("x-hop", "1")
        .header("x-original-uri", "/public")
        .body(())
        .unwrap()
        .into_parts()
        .0;
    let keys = ["x-request-key", "x-alias"].map(HeaderName::from_static);
    let request = authorise_request(&head, &keys);
    let sent: Vec<_> = request.headers().keys().map(HeaderName::as_str).collect();
    assert_eq!(sent, ["authorization", "cookie", "x-original-method", "x-original-uri"]);
    assert_eq!(request.headers()["x-original-uri"], "/v1/orders?a=b");
    assert_eq!(request.headers()["x-original-method"], "POST");
    assert_eq!(request.method(), Method::GET);
}
