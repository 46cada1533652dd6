//! [`Dialect`]: existing conventions as policies. Data only.

use std::collections::BTreeMap;
use std::time::Duration;

use hapax_core::JsonPointer;
use http::{HeaderName, Method};
use serde::{Deserialize, Serialize};

use super::classify::Outcomes;
use super::key_place::KeyPlace;
use super::key_source::IDEMPOTENCY_KEY;
use super::problem::{Code, RefusalShapeName};
use super::scope::Endpoint;
use super::settings::{KeySpelling, RefusalStatus, Settings, Span, Text};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// An existing convention for keys and responses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Dialect {
    /// The defaults of Hapax.
    #[default]
    Default,
    /// The IETF draft, strictly: quoted keys only.
    Ietf,
    /// Stripe's first API: server errors are final, and a key belongs to one endpoint.
    #[serde(rename = "stripe-v1")]
    StripeV1,
    /// Stripe's second API: a failed request may run again, and keys are kept for 30 days.
    #[serde(rename = "stripe-v2")]
    StripeV2,
    /// Adyen: short keys, repeated on the response; `transient-error: true` asks for a retry.
    Adyen,
    /// Only successes are final.
    SuccessOnly,
    /// OASIS Repeatable Requests, as implemented by Azure.
    Oasis,
    /// Square: the key is the member `idempotency_key` of the body.
    Square,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Self; 8] = [
        Self::Default,
        Self::Ietf,
        Self::StripeV1,
        Self::StripeV2,
        Self::Adyen,
        Self::SuccessOnly,
        Self::Oasis,
        Self::Square,
    ];

    /// The name used in files and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Ietf => "ietf",
            Self::StripeV1 => "stripe-v1",
            Self::StripeV2 => "stripe-v2",
            Self::Adyen => "adyen",
            Self::SuccessOnly => "success-only",
            Self::Oasis => "oasis",
            Self::Square => "square",
        }
    }

    /// The options that the convention sets.
    pub(super) fn settings(self) -> Settings {
        let reused_400 = || Some(BTreeMap::from([(Text(Code::KeyReused), RefusalStatus::BAD_REQUEST)]));
        let stripe = || Settings {
            key_spelling: Some(KeySpelling::Raw),
            replay_marker: header("idempotent-replayed"),
            retry_hint: header("stripe-should-retry"),
            refusals: Some(RefusalShapeName::Stripe.into()),
            ..Settings::default()
        };
        match self {
            Self::Default | Self::SuccessOnly => Settings::default(),
            Self::Ietf => Settings {
                key_spelling: Some(KeySpelling::Quoted),
                replay_marker: header("idempotent-replayed"),
                ..Settings::default()
            },
            Self::StripeV1 => Settings {
                methods: Some(vec![Text(Method::POST)]),
                endpoint: Some(Endpoint::Fingerprint),
                statuses: reused_400(),
                ..stripe()
            },
            Self::StripeV2 => Settings {
                methods: Some(vec![Text(Method::POST), Text(Method::DELETE)]),
                retention: Some(Span(30 * DAY)),
                ..stripe()
            },
            Self::Adyen => Settings {
                methods: Some(vec![Text(Method::POST)]),
                key_spelling: Some(KeySpelling::Raw),
                key_length_max: Some(64),
                retention: Some(Span(7 * DAY)),
                echo_key: Some(true),
                ..Settings::default()
            },
            Self::Oasis => Settings {
                header: header("repeatability-request-id"),
                first_sent: header("repeatability-first-sent"),
                statuses: reused_400(),
                ..Settings::default()
            },
            Self::Square => Settings {
                key_spelling: Some(KeySpelling::Raw),
                key_from: Some(vec![
                    Text(KeyPlace::Header(IDEMPOTENCY_KEY)),
                    Text(KeyPlace::Json(JsonPointer::member("idempotency_key"))),
                ]),
                statuses: reused_400(),
                ..Settings::default()
            },
        }
    }

    /// The outcomes of responses.
    pub(super) fn outcomes(self) -> Outcomes {
        match self {
            Self::Default | Self::Ietf | Self::Square => Outcomes::default(),
            Self::StripeV1 => Outcomes::stripe_v1(),
            Self::StripeV2 | Self::SuccessOnly => Outcomes::success_only(),
            Self::Adyen => Outcomes::adyen(),
            Self::Oasis => Outcomes::oasis(),
        }
    }

    /// The response field that states whether the key was honoured.
    pub(super) fn result_header(self) -> Option<HeaderName> {
        (self == Self::Oasis).then_some(HeaderName::from_static("repeatability-result"))
    }
}

fn header(name: &'static str) -> Option<Text<HeaderName>> {
    Some(Text(HeaderName::from_static(name)))
}

impl std::str::FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, UnknownDialect> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name).ok_or(UnknownDialect)
    }
}

/// The text is not the name of a dialect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownDialect;

impl std::fmt::Display for UnknownDialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("unknown dialect; the dialects are")?;
        Dialect::ALL.iter().try_for_each(|dialect| write!(f, " {}", dialect.name()))
    }
}

impl std::error::Error for UnknownDialect {}

#[cfg(test)]
mod tests;
