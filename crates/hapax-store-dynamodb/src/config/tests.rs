use std::time::Duration;

use super::Options;

fn parse(url: &str) -> Result<Options, String> {
    Options::parse(url, |_| None)
}

#[test]
fn parses_urls() {
    let options = parse(
        "dynamodb://shop.keys_1?region=eu-central-1&timeout_ms=500&outcome_bytes_max=1000&connections_max=7&replicas=accept",
    )
    .unwrap();
    assert_eq!((options.table(), options.region()), ("shop.keys_1", "eu-central-1"));
    assert_eq!(options.endpoint.authority(), "dynamodb.eu-central-1.amazonaws.com");
    assert_eq!(options.timeout, Duration::from_millis(500));
    assert_eq!((options.outcome_bytes_max, options.connections_max), (1000, 7));
    let local = parse("dynamodb://hapax?region=local&endpoint=http%3A%2F%2F127.0.0.1:8000/").unwrap();
    assert_eq!(local.endpoint.authority(), "127.0.0.1:8000");
    let china = parse("dynamodb://hapax?region=cn-north-1").unwrap();
    assert_eq!(china.endpoint.authority(), "dynamodb.cn-north-1.amazonaws.com.cn");
}

#[test]
fn recognises_endpoints_of_aws() {
    let is_of_aws = |url: &str| parse(url).unwrap().endpoint.is_of_aws();
    assert!(is_of_aws("dynamodb://hapax?region=eu-central-1"));
    assert!(is_of_aws("dynamodb://hapax?region=cn-north-1"));
    let private = "https://vpce-0a1b.dynamodb.eu-central-1.vpce.amazonaws.com";
    assert!(is_of_aws(&format!("dynamodb://hapax?region=eu-central-1&endpoint={private}")));
    for endpoint in ["http://127.0.0.1:8000", "https://dynamodb.example", "https://amazonaws.com.example"] {
        assert!(!is_of_aws(&format!("dynamodb://hapax?region=local&endpoint={endpoint}")), "{endpoint}");
    }
}

#[test]
fn parses_sizes_with_units() {
    let options = |size: &str| parse(&format!("dynamodb://hapax?region=eu&outcome_bytes_max={size}"));
    for (size, bytes) in [("16MiB", 16 << 20), ("1mb", 1_000_000), ("64KiB", 64 << 10), ("7", 7)] {
        assert_eq!(options(size).unwrap().outcome_bytes_max, bytes, "{size}");
    }
    for (size, expected) in [("16M", "outcome_bytes_max: a size is"), ("0KiB", "not a size above zero")] {
        let why = options(size).unwrap_err();
        assert!(why.contains(expected), "{why}");
    }
}

#[test]
fn the_region_defaults_to_the_environment() {
    let named = |name: &str| (name == "AWS_DEFAULT_REGION").then(|| "eu-west-1".to_owned());
    assert_eq!(Options::parse("dynamodb://hapax", named).unwrap().region(), "eu-west-1");
    assert_eq!(Options::parse("dynamodb://hapax?region=eu-west-2", named).unwrap().region(), "eu-west-2");
}

#[test]
fn errors_name_the_mistake() {
    let cases = [
        ("redis://hapax", "dynamodb://"),
        ("dynamodb://hapax", "no region"),
        ("dynamodb://hapax?region=", "lower-case letters"),
        ("dynamodb://hapax?region=EU", "lower-case letters"),
        ("dynamodb://?region=eu", "3 to 255"),
        ("dynamodb://ab?region=eu", "3 to 255"),
        ("dynamodb://key:secret@hapax?region=eu", "3 to 255"),
        ("dynamodb://hapax?region=eu&endpoint=127.0.0.1", "endpoint"),
        ("dynamodb://hapax?region=eu&endpoint=ftp://host", "endpoint"),
        ("dynamodb://hapax?region=eu&endpoint=http://host/path", "endpoint"),
        ("dynamodb://hapax?region=eu&endpoint=http://user:word@host", "endpoint"),
        ("dynamodb://hapax?region=eu&timeout_ms=0", "timeout_ms"),
        ("dynamodb://hapax?region=eu&timeout_ms=soon", "timeout_ms"),
        ("dynamodb://hapax?region=eu&replicas=yes", "replicas"),
        ("dynamodb://hapax?region=%e", "region"),
        ("dynamodb://hapax?region=eu&regoin=x", "regoin"),
    ];
    for (url, expected) in cases {
        let why = parse(url).unwrap_err();
        assert!(why.contains(expected), "{url}: {why}");
        assert!(!why.contains("secret") && !why.contains("word"), "{why}");
    }
}
