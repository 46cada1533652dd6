use hapax_core::Fingerprint;

use super::*;

const TYPE_B: &str = "multipart/form-data; boundary=b";

fn of(content_type: &str, body: &str) -> Option<Fingerprint> {
    let parts = parts(content_type.as_bytes(), body.as_bytes())?;
    Some(add(Fingerprint::builder(), content_type.as_bytes(), &parts).build())
}

/// A body of these parts with this boundary.
fn body(boundary: &str, parts: &[&str]) -> String {
    let parts: String = parts.iter().map(|part| format!("--{boundary}\r\n{part}\r\n")).collect();
    format!("{parts}--{boundary}--\r\n")
}

fn of_parts(parts: &[&str]) -> Option<Fingerprint> {
    of(TYPE_B, &body("b", parts))
}

const NAME: &str =
    "Content-Disposition: form-data; name=\"a\"; filename=\"f.txt\"\r\nContent-Type: text/plain\r\n\r\nx";

#[test]
fn f_07_the_boundary_does_not_count() {
    let first = of_parts(&[NAME, "\r\ny"]).unwrap();
    for (content_type, boundary) in [
        ("multipart/form-data; boundary=----WebKitFormBoundary7MA4", "----WebKitFormBoundary7MA4"),
        ("Multipart/Form-Data; charset=utf-8; Boundary=\"a b;c\"", "a b;c"),
        ("multipart/form-data;boundary=x", "x"),
    ] {
        assert_eq!(of(content_type, &body(boundary, &[NAME, "\r\ny"])), Some(first), "{content_type}");
    }
    let padded = format!("\r\n--b \t\r\n{NAME}\r\n--b\r\n\r\ny\r\n--b--  ");
    assert_eq!(of(TYPE_B, &padded), Some(first));
}

#[test]
fn f_07_spelling_of_part_headers_does_not_count() {
    let first = of_parts(&[NAME]).unwrap();
    for part in [
        "content-type:text/plain\r\nCONTENT-DISPOSITION: Form-Data;filename=f.txt ; NAME=a\r\n\r\nx",
        "Content-Disposition:  form-data; name=a; filename=\"f.txt\"\t\r\nContent-Type: Text/Plain\r\n\r\nx",
    ] {
        assert_eq!(of_parts(&[part]), Some(first), "{part}");
    }
}

#[test]
fn f_07_name_filename_type_content_and_order_count() {
    let part = |headers: &str| format!("{headers}\r\n\r\nx");
    let different = [
        vec![],
        vec![NAME.to_owned()],
        vec![NAME.to_owned(), NAME.to_owned()],
        vec![NAME.replace("\"a\"", "\"A\"")],
        vec![NAME.replace("f.txt", "g.txt")],
        vec![NAME.replace("; filename=\"f.txt\"", "")],
        vec![NAME.replace("text/plain", "text/html")],
        vec![NAME.replace("text/plain", "text/plain; charset=latin1")],
        vec![format!("{NAME}y")],
        vec![format!("{NAME}\r\n")],
        vec![format!("Content-Transfer-Encoding: base64\r\n{NAME}")],
        vec![part("X: 1"), part("X: 2")],
        vec![part("X: 2"), part("X: 1")],
        vec![part("X: 1\r\nX: 2")],
        vec![part("X: 2\r\nX: 1")],
        vec![part("X: A")],
        vec![part("X: a")],
        vec![part("Content-Disposition: form-data; name")],
        vec![part("Content-Disposition: form-data; NAME")],
        vec!["\r\n".to_owned()],
        vec!["\r\n".to_owned(), "\r\n".to_owned()],
    ];
    let prints: Vec<_> = different
        .iter()
        .map(|parts| of_parts(&parts.iter().map(String::as_str).collect::<Vec<_>>()).expect("it has parts"))
        .collect();
    for (at, print) in prints.iter().enumerate() {
        let like = prints.iter().position(|other| other == print);
        assert_eq!(like, Some(at), "{:?}", different[at]);
    }
}

#[test]
fn f_07_parameters_of_the_content_type_count() {
    let of_type = |parameters: &str| of(&format!("multipart/related; {parameters}"), &body("b", &["\r\nx"]));
    assert_eq!(of_type("boundary=b; start=a; type=c/d"), of_type("TYPE=c/d;start=\"a\"; boundary=\"b\""));
    assert_ne!(of_type("boundary=b; start=a"), of_type("boundary=b; start=c"));
    assert_ne!(of_type("boundary=b; start=a"), of_type("boundary=b"));
}

#[test]
fn f_07_a_part_may_be_empty() {
    assert!(of_parts(&[""]).is_some());
    assert_eq!(of_parts(&[""]), of_parts(&["\r\n"]));
}

#[test]
fn f_07_nested_parts_are_read() {
    let nested = |boundary: &str, content: &str| {
        let inner = body(boundary, &[&format!("\r\n{content}"), "\r\n2"]);
        of_parts(&[&format!("Content-Type: multipart/mixed; boundary={boundary}\r\n\r\n{inner}")])
    };
    assert_eq!(nested("i", "1"), nested("j", "1"));
    assert_ne!(nested("i", "1"), nested("i", "3"));
    assert_ne!(nested("i", "1"), of_parts(&["\r\n1", "\r\n2"]));
    let split = |inner: &[&str], outer: &[&str]| {
        let nested = format!("Content-Type: multipart/mixed; boundary=i\r\n\r\n{}", body("i", inner));
        of_parts(&[&[&*nested], outer].concat()).expect("it has parts")
    };
    assert_ne!(split(&["\r\n1", "\r\n2"], &[]), split(&["\r\n1"], &["\r\n2"]));
    let two_types = |boundary: &str| {
        let inner = body("i", &["\r\n1"]);
        let types =
            format!("Content-Type: multipart/mixed; boundary=i\r\nContent-Type: x/y; boundary={boundary}");
        of_parts(&[&format!("{types}\r\n\r\n{inner}")])
    };
    assert_ne!(two_types("i"), two_types("j"), "a body with two types is not parsed");
    // An invalid nested multipart counts as sent, with its boundary.
    let broken =
        |boundary: &str| of_parts(&[&format!("Content-Type: multipart/mixed; boundary={boundary}\r\n\r\n1")]);
    assert!(broken("i").is_some());
    assert_ne!(broken("i"), broken("j"));
}

#[test]
fn f_07_the_depth_of_parts_is_limited() {
    let deep = |depth: usize, innermost: &str| {
        let mut text = body(innermost, &["\r\nx"]);
        let mut boundary = innermost.to_owned();
        for level in 1..depth {
            let part = format!("Content-Type: multipart/mixed; boundary={boundary}\r\n\r\n{text}");
            boundary = format!("level{level}");
            text = body(&boundary, &[&part]);
        }
        of(&format!("multipart/mixed; boundary={boundary}"), &text).expect("it has parts")
    };
    assert_eq!(deep(DEPTH_MAX, "i"), deep(DEPTH_MAX, "j"));
    assert_ne!(deep(DEPTH_MAX + 1, "i"), deep(DEPTH_MAX + 1, "j"), "too deep counts as sent");
}

#[test]
fn f_07_the_number_of_parts_is_limited() {
    let many = |count: usize| of_parts(&vec!["\r\nx"; count]);
    assert!(many(PARTS_MAX).is_some());
    assert_eq!(many(PARTS_MAX + 1), None);
    // Nested parts count as well: the outer one is the last that is allowed.
    let inner = |count: usize| {
        let nested = body("i", &vec!["\r\nx"; count]);
        of_parts(&[&format!("Content-Type: multipart/mixed; boundary=i\r\n\r\n{nested}"), "\r\ny"])
    };
    assert!(inner(PARTS_MAX - 2).is_some());
    assert_eq!(inner(PARTS_MAX - 1), None);
    let headers = |count: usize| of_parts(&[&format!("{}\r\n", "X: y\r\n".repeat(count))]);
    assert!(headers(HEADERS_MAX).is_some());
    assert_eq!(headers(HEADERS_MAX + 1), None);
}

#[test]
fn f_07_ambiguous_or_invalid_multipart_has_no_parts() {
    let whole = body("b", &["\r\nx"]);
    assert!(of(TYPE_B, &whole).is_some());
    for content_type in [
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=\"b",
        "multipart/form-data; boundary=c",
    ] {
        assert_eq!(of(content_type, &whole), None, "{content_type}");
    }
    let escape = "multipart/form-data; boundary=\"\\b\"";
    assert_eq!(of(escape, &body("\\b", &["\r\nx"])), None, "is the boundary with or without its escape?");
    let long = "b".repeat(BOUNDARY_LENGTH_MAX);
    assert!(of(&format!("multipart/x; boundary={long}"), &body(&long, &["\r\nx"])).is_some());
    assert_eq!(of(&format!("multipart/x; boundary={long}b"), &body(&format!("{long}b"), &["\r\nx"])), None);
    for malformed in [
        "",
        "x",
        "--b",
        "--b\r\n",
        "--b\r\n\r\nx",
        "--b\r\n\r\nx\r\n--b",
        "--b\r\n\r\nx\r\n--b-",
        "--b\r\n\r\nx\r\n--bc\r\n--b--",
        "--b\r\n\r\nx\r\n--b--after",
        "--b\r\n\r\nx\r\n--b--\r\nafter",
        "before\r\n--b\r\n\r\nx\r\n--b--",
        "--b\n\nx\n--b--\n",
        "--b\r\nX: y\r\n--b--",
        "--b\r\nno colon\r\n\r\nx\r\n--b--",
        "--b\r\n: y\r\n\r\nx\r\n--b--",
        "--b\r\nX: y\r\n folded\r\n\r\nx\r\n--b--",
        "--b\r\n folded: y\r\n\r\nx\r\n--b--",
    ] {
        assert_eq!(of(TYPE_B, malformed), None, "{malformed:?}");
    }
}
