//! Addresses of upstreams that are refused.

use hapax_proxy::{Forward, UpstreamOptions};

#[tokio::test]
async fn unusable_addresses_are_refused() {
    for (addresses, why) in [
        (vec![], "no upstream configured"),
        (vec!["/path"], "names no host"),
        (vec!["ftp://a"], "neither http nor https"),
        (vec!["http://a/path"], "has a path"),
        (vec!["http://a?query"], "has a path"),
        (vec!["http://user@a"], "holds credentials"),
        (vec!["http://a", "b:1"], "neither http nor https"),
    ] {
        let addresses: Vec<http::Uri> = addresses.into_iter().map(|text| text.parse().unwrap()).collect();
        let error = Forward::new(&addresses, &UpstreamOptions::default()).unwrap_err();
        assert!(error.to_string().contains(why), "{addresses:?}: {error}");
    }
}
