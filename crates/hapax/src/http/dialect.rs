//! [`Dialect`]: existing conventions as policies. Data only.

use std::time::Duration;

use hapax_core::{JsonPointer, KeyRules};
use http::{HeaderName, Method, StatusCode};
use serde::{Deserialize, Serialize};

use super::classify::Outcomes;
use super::policy::HttpPolicy;
use super::problem::{Code, RefusalShapeName};
use super::scope::Endpoint;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// An existing convention for keys and answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Dialect {
    /// What Hapax does by itself.
    #[default]
    Default,
    /// The draft of the IETF, to the letter: quoted keys only.
    Ietf,
    /// Stripe's first API: server errors are final, and a key belongs to one endpoint.
    #[serde(rename = "stripe-v1")]
    StripeV1,
    /// Stripe's second API: what failed may run again, and keys live for 30 days.
    #[serde(rename = "stripe-v2")]
    StripeV2,
    /// Adyen: short keys, repeated on the response; `transient-error: true` asks for a retry.
    Adyen,
    /// Only successes are final.
    SuccessOnly,
    /// OASIS Repeatable Requests, as Azure has it.
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

    pub(super) fn policy(self) -> HttpPolicy {
        let policy = HttpPolicy { dialect: self, ..HttpPolicy::default() };
        match self {
            Self::Default => policy,
            Self::Ietf => {
                policy.key_rules(KeyRules::new().strict()).replay_marker(name("idempotent-replayed"))
            }
            Self::StripeV1 => HttpPolicy { outcomes: Outcomes::stripe_v1(), ..policy }
                .methods([Method::POST])
                .key_rules(KeyRules::new().raw())
                .endpoint(Endpoint::Fingerprint)
                .status(Code::KeyReused, StatusCode::BAD_REQUEST)
                .replay_marker(name("idempotent-replayed"))
                .retry_hint(name("stripe-should-retry"))
                .refusals(RefusalShapeName::Stripe.into()),
            Self::StripeV2 => HttpPolicy { outcomes: Outcomes::success_only(), ..policy }
                .methods([Method::POST, Method::DELETE])
                .key_rules(KeyRules::new().raw())
                .retention(30 * DAY)
                .replay_marker(name("idempotent-replayed"))
                .retry_hint(name("stripe-should-retry"))
                .refusals(RefusalShapeName::Stripe.into()),
            Self::Adyen => HttpPolicy { outcomes: Outcomes::adyen(), ..policy }
                .methods([Method::POST])
                .key_rules(KeyRules::new().raw().length_max(64))
                .retention(7 * DAY)
                .echo_key(true),
            Self::SuccessOnly => HttpPolicy { outcomes: Outcomes::success_only(), ..policy },
            Self::Oasis => {
                let mut policy = HttpPolicy { outcomes: Outcomes::oasis(), ..policy }
                    .header(name("repeatability-request-id"))
                    .first_sent(name("repeatability-first-sent"), Duration::from_secs(300))
                    .status(Code::KeyReused, StatusCode::BAD_REQUEST);
                policy.result_header = Some(name("repeatability-result"));
                policy
            }
            Self::Square => policy
                .key_rules(KeyRules::new().raw())
                .key_pointer(JsonPointer::member("idempotency_key"))
                .status(Code::KeyReused, StatusCode::BAD_REQUEST),
        }
    }
}

fn name(name: &'static str) -> HeaderName {
    HeaderName::from_static(name)
}

impl std::str::FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, UnknownDialect> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name).ok_or(UnknownDialect)
    }
}

/// No dialect has that name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownDialect;

impl std::fmt::Display for UnknownDialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no dialect has that name; there are")?;
        Dialect::ALL.iter().try_for_each(|dialect| write!(f, " {}", dialect.name()))
    }
}

impl std::error::Error for UnknownDialect {}

#[cfg(test)]
mod tests;
