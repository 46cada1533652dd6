//! The retention of a settled record: that of its route, as for a record that has completed.

use std::time::Duration;

use hapax::http::{DERIVED_KEY_MARK, Endpoint, IdempotencyLayer};
use http::Method;

use crate::config::Route;

/// The retention without a policy: that of functions, whose policy is in the calling code.
const FUNCTION_RETENTION: Duration = Duration::from_secs(24 * 3600);

/// The retention of `operation` by `routes` and the layer that is made of them. If several routes are possible, it is the
/// longest of theirs: a record that is removed too early lets the operation run again.
pub(crate) fn retention_of(operation: &str, layer: &IdempotencyLayer, routes: &[Route]) -> Duration {
    let is_derived = operation.split(' ').any(|word| word == DERIVED_KEY_MARK);
    let kept = |route: &Route| kept(route, is_derived);
    let parts: Vec<&str> = operation.split(' ').filter(|word| *word != DERIVED_KEY_MARK).collect();
    let of_route = match parts[..] {
        ["http", ..] => {
            let is_it = |route: &&Route| route.policy.settings().endpoint == Some(Endpoint::Fingerprint);
            routes.iter().filter(is_it).filter_map(kept).max()
        }
        [method, path] | [method, _, path] if path.starts_with('/') => {
            let position = method.parse::<Method>().ok().and_then(|method| layer.position_of(&method, path));
            // A path that is no longer covered has the retention of the last route.
            position.and_then(|position| routes.get(position)).or(routes.last()).and_then(kept)
        }
        _ => None,
    };
    of_route.unwrap_or(FUNCTION_RETENTION)
}

fn kept(route: &Route, is_derived: bool) -> Option<Duration> {
    let settings = route.policy.settings();
    let window = settings.key_derive_window.filter(|_| is_derived);
    window.or(settings.retention).map(|span| span.0)
}

#[cfg(test)]
mod tests {

    use hapax::{Hapax, MemoryStore};

    use super::*;
    use crate::config::{Config, Flags};

    const FILE: &str = r#"
[defaults]
retention = "2h"

[[route]]
path = "/v1/payments/**"
methods = ["POST"]
retention = "30d"

[[route]]
path = "/v1/carts"
key_derive = ["/id"]
key_derive_window = "3h"
retention = "9h"

[[route]]
path = "/v1/charges"
dialect = "stripe-v1"
retention = "7d"

[[route]]
path = "/v1/refunds"
dialect = "stripe-v1"
retention = "1h"
"#;

    #[tokio::test]
    async fn an_operation_has_the_retention_of_its_route() {
        const HOUR: u64 = 3600;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hapax.toml");
        std::fs::write(&path, FILE).unwrap();
        let config = Config::load(&Flags::new(Some(path)), []).unwrap();
        let layer = config
            .layer(&Hapax::builder(MemoryStore::new()).sweep(None).build(), |route| route.policy.clone());
        for (operation, hours) in [
            ("POST /v1/payments/7", 30 * 24),
            ("POST shop.example /v1/payments/7", 30 * 24),
            ("POST /v1/orders", 2),
            ("POST /v1/carts", 9),
            ("POST key:derived /v1/carts", 3),
            ("POST key:derived shop.example /v1/carts", 3),
            ("POST key:derived /v1/orders", 2),
            ("GET /v1/payments", 2),
            // One of the two routes whose operations have no path.
            ("http", 7 * 24),
            ("http shop.example", 7 * 24),
            ("http key:derived  POST /v1/charges", 7 * 24),
            ("charge", 24),
            ("charge card", 24),
            ("", 24),
        ] {
            let kept = retention_of(operation, &layer, &config.routes);
            assert_eq!(kept, Duration::from_secs(hours * HOUR), "{operation}");
        }
    }
}
