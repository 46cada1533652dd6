use http::HeaderValue;

use super::*;

fn followed(status: u16, location: &'static str) -> Option<String> {
    let headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_static(location))]);
    let url = Url::parse("https://shop.example/orders?page=1").unwrap();
    target(StatusCode::from_u16(status).unwrap(), &headers, &url).map(String::from)
}

#[test]
fn c_04_only_redirects_within_the_origin_are_followed() {
    let moved = Some("https://shop.example/v2/orders".to_owned());
    for location in
        ["/v2/orders", "v2/orders", "https://shop.example/v2/orders", "https://shop.example:443/v2/orders"]
    {
        assert_eq!(followed(307, location), moved, "{location}");
        assert_eq!(followed(308, location), moved, "{location}");
    }
    for location in [
        "http://shop.example/orders",
        "https://shop.example:8443/orders",
        "//evil.example/",
        "data:,x",
        "https://",
    ] {
        assert_eq!(followed(307, location), None, "{location}");
    }
}

#[test]
fn c_04_redirects_that_change_the_method_are_answers() {
    for status in [200, 300, 301, 302, 303, 304] {
        assert_eq!(followed(status, "/v2/orders"), None, "{status}");
    }
}
