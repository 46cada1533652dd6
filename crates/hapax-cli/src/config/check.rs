//! What should worry somebody about a configuration, and the configuration in force as a document.

use hapax::http::settings::{FingerprintName, OnLapseName, Text};
use hapax::http::{EarlyData, KeyMode, OnStoreError, Settings, StatusSet};
use http::{HeaderName, Uri};
use serde_json::{Value, json};

use super::{Config, Route};
use crate::admin::AdminListen;
use crate::stores::StoreUrl;

impl Route {
    /// The paths as they are written; `/**` where it takes what is left.
    pub(crate) fn paths(&self) -> &str {
        self.path.as_ref().map_or("/**", |path| path.as_str())
    }

    /// What somebody should know before the first request.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let of_policy = self.policy.warnings().into_iter().map(str::to_owned);
        of_policy.chain(self.risks()).collect()
    }

    /// The choices that give up something. A route that is off gives up nothing.
    fn risks(&self) -> impl Iterator<Item = String> {
        let settings = self.policy.settings();
        let is_on = settings.key != Some(KeyMode::Off);
        let taken = RISKS.iter().filter(move |(is_taken, _)| is_on && is_taken(&settings));
        let asked = [("reconcile", &self.reconcile), ("authorise", &self.authorise)];
        let asked = asked.into_iter().filter(move |_| is_on);
        let in_clear = asked.filter_map(|(name, url)| in_clear(name, url.as_ref()?));
        taken.map(|(_, why)| (*why).to_owned()).chain(in_clear)
    }

    fn document(&self) -> Value {
        json!({
            "path": self.paths(),
            "settings": self.policy.settings(),
            "reconcile": self.reconcile.as_ref().map(shown),
            "authorise": self.authorise.as_ref().map(shown),
            "authorise_principal": self.authorise_principal.as_ref().map(HeaderName::as_str),
            "warnings": self.warnings(),
        })
    }
}

type Risk = (fn(&Settings) -> bool, &'static str);

/// Choices that give up something that is promised otherwise.
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
        "502 or 504 releases the key: a gateway behind says these without knowing whether the service ran the request, which then may run twice",
    ),
    (
        |settings| settings.fingerprint == Some(FingerprintName::Key) && settings.webhook.is_none(),
        "fingerprint = \"key\": another request under a known key gets the answer of the first one",
    ),
    (
        |settings| settings.early_data == Some(EarlyData::Accept),
        "early_data = \"accept\": whoever recorded a handshake can send its request again",
    ),
    (
        |settings| settings.replay_set_cookie == Some(true),
        "replay_set_cookie = true: cookies of the first answer are stored and given out again",
    ),
];

/// Whether an answer that a gateway makes when it does not know frees the key. A single status counts before its class.
fn releases_gateways(settings: &Settings) -> bool {
    let says = |list: &Option<Vec<Text<StatusSet>>>, word: &str| {
        list.iter().flatten().any(|said| said.to_string() == word)
    };
    ["502", "504"].iter().any(|status| {
        let is_kept = says(&settings.pin, status) || says(&settings.uncertain, status);
        says(&settings.release, status) || (says(&settings.release, "5xx") && !is_kept)
    })
}

impl Config {
    /// What somebody should know about everything but the routes.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.store == StoreUrl::Memory {
            warnings.push("store: memory: forgets everything when the process ends".to_owned());
        }
        if self.store_options.sweep.0.is_none() {
            warnings
                .push("store: sweep = \"off\": expired records stay until `hapax sweep` is run".to_owned());
        }
        if self.tls.is_none() && !self.listen.ip().is_loopback() {
            warnings.push(format!("listen: {} is reached from elsewhere and speaks plain HTTP", self.listen));
        }
        if let AdminListen::At(address) = self.admin.listen
            && !address.ip().is_loopback()
        {
            warnings.push(format!("admin: {address} is reached from elsewhere"));
        }
        warnings.extend(self.upstream.iter().filter_map(|url| in_clear("upstream", url)));
        warnings
            .extend(self.trace.endpoint.iter().filter_map(|collector| in_clear("trace", collector.url())));
        if self.store.is_in_clear() {
            warnings.push(format!(
                "store: {} is elsewhere and is talked to without TLS: records and passwords can be read on the way",
                self.store
            ));
        }
        if self.transport.trust_forwarded {
            warnings.push(
                "transport: trust_forwarded = true: whoever is no proxy of yours can say where it came from"
                    .to_owned(),
            );
        }
        if self.transport.body_rate_min == 0 {
            warnings.push("transport: body_rate_min = 0: a body may take for ever to come".to_owned());
        }
        if self.upstream_options.connections_max == 0 {
            warnings.push(
                "upstream_options: connections_max = 0: nothing keeps the service from too many connections"
                    .to_owned(),
            );
        }
        warnings
    }

    /// The choices of routes that give up something, each with the paths of all that have made it. Their layer tells the
    /// rest itself.
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

    /// What is in force, option by option. Secrets are left out.
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

/// A URL without its query, which may hold a secret.
pub(crate) fn shown(url: &Uri) -> String {
    match url.query() {
        None => url.to_string(),
        Some(_) => {
            format!("{}?…", url.to_string().split('?').next().unwrap_or_default())
        }
    }
}

/// A warning where `url` leads to another machine without TLS.
fn in_clear(option: &str, url: &Uri) -> Option<String> {
    let is_clear = url.scheme_str() == Some("http") && url.host().is_some_and(is_elsewhere);
    is_clear.then(|| format!("{option}: {} is elsewhere and is talked to in plain HTTP", shown(url)))
}

/// Whether a host is, or may be, another machine.
pub(crate) fn is_elsewhere(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host != "localhost" && !bare.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}
