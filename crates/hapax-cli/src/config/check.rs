//! Warnings about a configuration, and the effective configuration as a document.

use hapax::http::settings::{FingerprintName, OnLapseName, Text};
use hapax::http::{EarlyData, KeyMode, OnStoreError, Settings, StatusSet};
use hapax_admin::AdminListen;
use http::{HeaderName, Uri};
use serde_json::{Value, json};

use super::{Config, Route};
use crate::stores::StoreUrl;

impl Route {
    /// The path pattern as it was written; `/**` for the paths that no other route matches.
    pub(crate) fn paths(&self) -> &str {
        self.path.as_ref().map_or("/**", |path| path.as_str())
    }

    /// All warnings about the route.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let of_policy = self.policy.warnings().into_iter().map(str::to_owned);
        of_policy.chain(self.risks()).collect()
    }

    /// Warnings about settings that weaken a guarantee. A route that is off has none.
    fn risks(&self) -> impl Iterator<Item = String> {
        let settings = self.policy.settings();
        let is_on = settings.key != Some(KeyMode::Off);
        let taken = RISKS.iter().filter(move |(is_taken, _)| is_on && is_taken(&settings));
        let urls = [("reconcile", &self.reconcile), ("authorise", &self.authorise)];
        let urls = urls.into_iter().filter(move |_| is_on);
        let plain_http = urls.filter_map(|(name, url)| plain_http_warning(name, url.as_ref()?));
        taken.map(|(_, why)| (*why).to_owned()).chain(plain_http)
    }

    fn document(&self) -> Value {
        json!({
            "path": self.paths(),
            "settings": self.policy.settings(),
            "reconcile": self.reconcile.as_ref().map(without_query),
            "authorise": self.authorise.as_ref().map(without_query),
            "authorise_principal": self.authorise_principal.as_ref().map(HeaderName::as_str),
            "warnings": self.warnings(),
        })
    }
}

type Risk = (fn(&Settings) -> bool, &'static str);

/// Settings that weaken a guarantee.
const RISKS: [Risk; 6] = [
    (
        |settings| settings.on_store_error == Some(OnStoreError::Pass),
        "on_store_error = \"pass\": while the store is down, requests run unprotected and may run twice",
    ),
    (
        |settings| settings.on_lapse == Some(OnLapseName::Rerun),
        "on_lapse = \"rerun\": an operation whose owner was lost runs again and may happen twice",
    ),
    (
        releases_gateways,
        "502 or 504 releases the key: a gateway in between returns them without knowing whether the service executed the request, which then may run twice",
    ),
    (
        |settings| settings.fingerprint == Some(FingerprintName::Key) && settings.webhook.is_none(),
        "fingerprint = \"key\": another request with a known key receives the response of the first one",
    ),
    (
        |settings| settings.early_data == Some(EarlyData::Accept),
        "early_data = \"accept\": early data can be replayed by an attacker",
    ),
    (
        |settings| settings.replay_set_cookie == Some(true),
        "replay_set_cookie = true: cookies of the first response are stored and sent again",
    ),
];

/// Whether a response that a gateway generates without knowing the outcome frees the key. A single status takes precedence
/// over its class.
fn releases_gateways(settings: &Settings) -> bool {
    let has = |list: &Option<Vec<Text<StatusSet>>>, word: &str| {
        list.iter().flatten().any(|set| set.to_string() == word)
    };
    ["502", "504"].iter().any(|status| {
        let is_kept = has(&settings.pin, status) || has(&settings.uncertain, status);
        has(&settings.release, status) || (has(&settings.release, "5xx") && !is_kept)
    })
}

impl Config {
    /// All warnings about options other than those of routes.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.store == StoreUrl::Memory {
            warnings.push("store: memory: loses all records when the process ends".to_owned());
        }
        if self.store_options.sweep.0.is_none() {
            warnings.push("store: sweep = \"off\": expired records stay until `hapax sweep` runs".to_owned());
        }
        if self.tls.is_none() && !self.listen.ip().is_loopback() {
            warnings
                .push(format!("listen: {} is reachable from other machines over plain HTTP", self.listen));
        }
        if let AdminListen::At(address) = self.admin.listen
            && !address.ip().is_loopback()
        {
            warnings.push(format!("admin: {address} is reachable from other machines"));
        }
        warnings.extend(self.upstream.iter().filter_map(|url| plain_http_warning("upstream", url)));
        warnings.extend(
            self.trace.endpoint.iter().filter_map(|collector| plain_http_warning("trace", collector.url())),
        );
        if self.store.is_unencrypted() {
            warnings.push(format!(
                "store: {} is on another machine and used without TLS: records and passwords can be read in transit",
                self.store
            ));
        }
        if self.transport.trust_forwarded {
            warnings.push(
                "transport: trust_forwarded = true: clients that are not trusted proxies can forge their addresses"
                    .to_owned(),
            );
        }
        if self.transport.body_rate_min == 0 {
            warnings.push("transport: body_rate_min = 0: a slow request body is never aborted".to_owned());
        }
        if self.upstream_options.connections_max == 0 {
            warnings.push(
                "upstream_options: connections_max = 0: connections to the service are unlimited".to_owned(),
            );
        }
        warnings
    }

    /// The settings of routes that weaken a guarantee, each with the paths of all routes that have it. The other warnings
    /// are logged by their layer.
    pub(crate) fn risks(&self) -> Vec<String> {
        let mut taken: Vec<(String, Vec<&str>)> = Vec::new();
        for route in &self.routes {
            for risk in route.risks() {
                match taken.iter_mut().find(|(known, _)| *known == risk) {
                    Some((_, paths)) => paths.push(route.paths()),
                    None => taken.push((risk, vec![route.paths()])),
                }
            }
        }
        taken.into_iter().map(|(risk, paths)| format!("{}: {risk}", paths.join(" "))).collect()
    }

    /// The effective configuration, option by option, without secrets.
    pub(crate) fn document(&self) -> Value {
        json!({
            "file": self.file.as_ref().map(|file| file.display().to_string()),
            "listen": self.listen,
            "upstream": self.upstream.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "store": { "url": self.store.to_string(), "sweep": self.store_options.sweep,
                "timeout": self.store_options.timeout, "cache_bytes": self.store_options.cache_bytes },
            "limits": self.limits,
            "routes": self.routes.iter().map(Route::document).collect::<Vec<_>>(),
            "admin": self.admin,
            "transport": self.transport,
            "tls": self.tls,
            "upstream_options": self.upstream_options,
            "log": self.log,
            "trace": self.trace,
            "drain": { "limit": hapax::http::settings::Span(self.drain) },
        })
    }
}

/// A URL without its query, which may contain a secret.
pub(crate) fn without_query(url: &Uri) -> String {
    match url.query() {
        None => url.to_string(),
        Some(_) => {
            format!("{}?…", url.to_string().split('?').next().unwrap_or_default())
        }
    }
}

/// A warning if `url` is on another machine and without TLS.
fn plain_http_warning(option: &str, url: &Uri) -> Option<String> {
    let is_clear = url.scheme_str() == Some("http") && url.host().is_some_and(is_remote);
    is_clear
        .then(|| format!("{option}: {} is on another machine and used over plain HTTP", without_query(url)))
}

/// Whether a host is, or may be, another machine.
pub(crate) fn is_remote(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host != "localhost" && !bare.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}
