//! Defects in what the wire brings with it (T).

use hapax_model::teeth::{Proof, Tooth};

const CLASSIFY: &str = "crates/hapax/src/http/classify.rs";
const EXCHANGE: &str = "crates/hapax/src/http/exchange.rs";
const GRPC: &str = "crates/hapax/src/http/grpc.rs";
const READ: &str = "crates/hapax/src/http/body/read.rs";
const SERVICE: &str = "crates/hapax/src/http/service.rs";
const TRANSITION: &str = "crates/hapax-core/src/transition.rs";

pub(super) const TEETH: &[Tooth] = &[
    Tooth {
        name: "a missing key is noticed after the body",
        file: SERVICE,
        find: "KeyMode::Required => Passage::Refused(index, policy.key_missing()),",
        replace: "KeyMode::Required => Passage::Covered(index, None),",
        breaks: &["T-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "a stated length is not believed",
        file: READ,
        find: "if announced.or(body.size_hint().exact()).is_some_and(|length| length > bytes_max as u64) {",
        replace: "if false {",
        breaks: &["T-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "a known conflict is told after the body",
        file: EXCHANGE,
        find: "is_asking && self.policy()",
        replace: "!is_asking && self.policy()",
        breaks: &["T-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "in progress comes before reused",
        file: TRANSITION,
        find: "            Some(false) => return Decision::keep(Claim::Mismatch),",
        replace: concat!(
            "            Some(false) if matches!(record.status, Status::InProgress { .. }) => {}\n",
            "            Some(false) => return Decision::keep(Claim::Mismatch),",
        ),
        breaks: &["T-02"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "a body that breaks off is whole",
        file: READ,
        find: "let frame = frame.map_err(|_| ReadFault::CutShort)?;",
        replace: "let Ok(frame) = frame else { break };",
        breaks: &["T-03"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "old HTTP is not protected",
        file: SERVICE,
        find: "            Found::Covered(index) => {\n",
        replace: concat!(
            "            Found::Covered(_) if request.version() == http::Version::HTTP_10 => Passage::Untouched,\n",
            "            Found::Covered(index) => {\n",
        ),
        breaks: &["T-04"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "errors in a GraphQL answer are not seen",
        file: EXCHANGE,
        find: "Classifier::GraphQl => classify::graphql(body),",
        replace: "Classifier::GraphQl => classify::graphql(&body[..0]),",
        breaks: &["T-05"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "data in a GraphQL answer is not seen",
        file: CLASSIFY,
        find: "answer.data.is_none() && answer.errors",
        replace: "answer.errors",
        breaks: &["T-05"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "trailers are not looked at",
        file: EXCHANGE,
        find: "grpc::outcome(&policy.outcomes, parts, trailers).map(|(outcome, _)| outcome)",
        replace: "trailers.and(None)",
        breaks: &["T-05"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "a call that was given up has not happened",
        file: GRPC,
        find: "Self::Cancelled | Self::Unknown | Self::DeadlineExceeded => Outcome::Uncertain,",
        replace: "Self::Cancelled | Self::Unknown | Self::DeadlineExceeded => Outcome::Release,",
        breaks: &["T-05"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "the key is kept from the origin",
        file: EXCHANGE,
        find: "        parts.extensions.insert(IdempotencyKey(key));\n",
        replace: concat!(
            "        parts.headers.remove(\"idempotency-key\");\n",
            "        parts.extensions.insert(IdempotencyKey(key));\n",
        ),
        breaks: &["T-06"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "the key is spelled anew",
        file: EXCHANGE,
        find: "        parts.extensions.insert(IdempotencyKey(key));\n",
        replace: concat!(
            "        let spelled = HeaderValue::try_from(format!(\"\\\"{}\\\"\", key.as_str())).expect(\"a key is ASCII\");\n",
            "        parts.headers.insert(\"idempotency-key\", spelled);\n",
            "        parts.extensions.insert(IdempotencyKey(key));\n",
        ),
        breaks: &["T-06"],
        caught_by: Proof::HttpCases,
    },
];
