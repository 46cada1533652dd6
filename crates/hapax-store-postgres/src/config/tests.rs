use std::time::Duration;

use hapax_core::StoreErrorKind;
use tokio_postgres::config::SslMode;

use super::{Listen, Options};

#[test]
fn parses_options_from_the_url() {
    let url = "postgres://user:secret@host:7000/orders?schema=shop&timeout_ms=250&pool=3&listen=db:5432\
               &outcome_bytes_max=1000&sslmode=verify-full&application_name=shop";
    let options = Options::from_url(url).unwrap();
    assert_eq!((options.address().as_str(), options.schema.as_str()), ("host:7000/orders", "shop"));
    assert_eq!((options.timeout, options.pool), (Duration::from_millis(250), 3));
    assert_eq!(options.listen, Listen::At("db".to_owned(), 5432));
    assert_eq!(options.outcome_bytes_max, 1000);
    assert_eq!(options.config.get_ssl_mode(), SslMode::Require);
    let listener = options.listener().unwrap();
    assert_eq!((listener.get_ports(), listener.get_dbname()), (&[5432][..], Some("orders")));
    assert!(!format!("{options:?}").contains("secret"));
}

#[test]
fn tls_defaults_depend_on_the_host() {
    for (url, mode) in [
        ("postgres://127.0.0.1/a", SslMode::Disable),
        ("postgresql://localhost/a", SslMode::Disable),
        ("postgres:///a?host=/run/postgresql", SslMode::Disable),
        ("postgres://127.0.0.1/a?sslmode=require", SslMode::Require),
        ("postgres://db.example/a", SslMode::Prefer),
    ] {
        assert_eq!(Options::from_url(url).unwrap().config.get_ssl_mode(), mode, "{url}");
    }
    assert_eq!(Options::from_url("postgres://h/a?listen=off").unwrap().listener(), None);
}

#[test]
fn parses_sizes_with_units() {
    let options = |size: &str| Options::from_url(&format!("postgres://h/a?outcome_bytes_max={size}"));
    for (size, bytes) in [("16MiB", 16 << 20), ("1mb", 1_000_000), ("64KiB", 64 << 10), ("7", 7)] {
        assert_eq!(options(size).unwrap().outcome_bytes_max, bytes, "{size}");
    }
    for (size, expected) in [("16M", "outcome_bytes_max: a size is"), ("4GiB", "is larger than this option")]
    {
        let why = format!("{:?}", options(size).unwrap_err());
        assert!(why.contains(expected), "{why}");
    }
}

#[test]
fn refuses_a_malformed_url_without_repeating_it() {
    for url in [
        "",
        "postgres:",
        "postgres://",
        "http://secret@host/a",
        "postgres://u:secret@host/a#insecure",
        "postgres://u:secret@host:port/a",
        "postgres://u:secret@host/a?shema=b",
        "postgres://u:secret@host/a?schema=Shop",
        "postgres://u:secret@host/a?schema=a%22b",
        "postgres://u:secret@host/a?schema",
        "postgres://u:secret@host/a?timeout_ms=soon",
        "postgres://u:secret@host/a?timeout_ms=0",
        "postgres://u:secret@host/a?pool=-1",
        "postgres://u:secret@host/a?listen=db",
        "postgres://u:secret@host/a?listen=:1",
        "postgres://u:secret@host/a?sslmode=maybe",
        "postgres://u:secret@host/a?ca=/no/such/file",
        "postgres://u:secret@host/a?schema=%",
        "postgres://u:secret@host/a?schema=%zz",
    ] {
        let error = Options::from_url(url).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Invalid, "{url}");
        let shown = format!("{error:?}");
        assert!(!shown.contains("secret"), "{shown}");
    }
}
