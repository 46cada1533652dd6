//! Defects in dialects, gRPC and webhooks (P).

use hapax_model::teeth::{Proof, Tooth};

const APPLY: &str = "crates/hapax/src/http/settings/apply.rs";
const CLASSIFY: &str = "crates/hapax/src/http/classify.rs";
const CLOUD_EVENTS: &str = "crates/hapax/src/http/webhook/cloud_events.rs";
const DIALECT: &str = "crates/hapax/src/http/dialect.rs";
const EXCHANGE: &str = "crates/hapax/src/http/exchange.rs";
const GRPC: &str = "crates/hapax/src/http/grpc.rs";
const LAYER: &str = "crates/hapax/src/http/layer.rs";
const POLICY: &str = "crates/hapax/src/http/policy.rs";
const REFUSAL: &str = "crates/hapax/src/http/exchange/refusal.rs";
const REQUEST: &str = "crates/hapax/src/http/fingerprint.rs";
const SIGNATURE: &str = "crates/hapax/src/http/webhook/signature.rs";
const TABLE: &str = "crates/hapax/src/http/problem/table.rs";
const WEBHOOK: &str = "crates/hapax/src/http/webhook.rs";

pub(super) const TEETH: &[Tooth] = &[
    Tooth {
        name: "the draft takes bare keys",
        file: DIALECT,
        find: "policy.key_rules(KeyRules::new().strict()).replay_marker",
        replace: "policy.key_rules(KeyRules::new()).replay_marker",
        breaks: &["P-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "stripe-v1 runs errors again",
        file: DIALECT,
        find: "outcomes: Outcomes::stripe_v1(), ",
        replace: "",
        breaks: &["P-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "stripe-v1 answers a reused key with 422",
        file: DIALECT,
        find: concat!(
            "                .endpoint(Endpoint::Fingerprint)\n",
            "                .status(Code::KeyReused, StatusCode::BAD_REQUEST)\n",
        ),
        replace: "                .endpoint(Endpoint::Fingerprint)\n",
        breaks: &["P-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "stripe-v1 takes a key for one endpoint",
        file: DIALECT,
        find: concat!("                .endpoint(Endpoint::Fingerprint)\n", "                .status",),
        replace: "                .status",
        breaks: &["P-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "stripe-v2 keeps failures",
        file: DIALECT,
        find: "Self::StripeV2 => HttpPolicy { outcomes: Outcomes::success_only(), ..policy }",
        replace: "Self::StripeV2 => HttpPolicy { outcomes: Outcomes::stripe_v1(), ..policy }",
        breaks: &["P-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "adyen takes long keys",
        file: DIALECT,
        find: "KeyRules::new().length_max(64)",
        replace: "KeyRules::new()",
        breaks: &["P-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "adyen has no transient errors",
        file: CLASSIFY,
        find: "outcomes.transient_error = true;",
        replace: "outcomes.transient_error = false;",
        breaks: &["P-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "adyen runs errors again",
        file: CLASSIFY,
        find: "Self::default().with_class(Outcome::Pin, 5)",
        replace: "Self::default()",
        breaks: &["P-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "success-only keeps refusals",
        file: DIALECT,
        find: "Self::SuccessOnly => HttpPolicy { outcomes: Outcomes::success_only(), ..policy },",
        replace: "Self::SuccessOnly => policy,",
        breaks: &["P-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "oasis reads the usual header",
        file: DIALECT,
        find: "                    .header(name(\"repeatability-request-id\"))\n",
        replace: "",
        breaks: &["P-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "oasis asks for no time",
        file: DIALECT,
        find: "                    .first_sent(name(\"repeatability-first-sent\"), Duration::from_secs(300))\n",
        replace: "",
        breaks: &["P-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "oasis answers a reused key with 422",
        file: DIALECT,
        find: concat!(
            "Duration::from_secs(300))\n",
            "                    .status(Code::KeyReused, StatusCode::BAD_REQUEST);",
        ),
        replace: "Duration::from_secs(300));",
        breaks: &["P-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "oasis has no result",
        file: DIALECT,
        find: "                policy.result_header = Some(name(\"repeatability-result\"));\n",
        replace: "                policy.result_header = None;\n",
        breaks: &["P-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "oasis answers an old request with 400",
        file: REFUSAL,
        find: "Problem::of(Code::KeyExpired, fault.detail()).with_status(StatusCode::PRECONDITION_FAILED)",
        replace: "Problem::of(Code::KeyExpired, fault.detail())",
        breaks: &["P-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "an option loses against its dialect",
        file: APPLY,
        find: "Some(KeySpelling::Any) => rules = rules.lenient(),",
        replace: "Some(KeySpelling::Any) => {}",
        breaks: &["P-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "a refusal is one of HTTP",
        file: EXCHANGE,
        find: "Classifier::Grpc => grpc::refusal(problem),",
        replace: "Classifier::Grpc => problem.response(&policy.refusals),",
        breaks: &["P-02"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "nobody is told when to call again",
        file: GRPC,
        find: "    headers.insert(PUSHBACK, pushback);\n",
        replace: "    let _ = pushback;\n",
        breaks: &["P-02"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "an unknown outcome may be called again",
        file: GRPC,
        find: "HeaderValue::from_static(\"-1\")",
        replace: "HeaderValue::from_static(\"1000\")",
        breaks: &["P-02"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "a missing key is a precondition",
        file: TABLE,
        find: concat!(
            "name: \"key-missing\",\n",
            "        status: StatusCode::BAD_REQUEST,\n",
            "        grpc: Status::InvalidArgument,",
        ),
        replace: concat!(
            "name: \"key-missing\",\n",
            "        status: StatusCode::BAD_REQUEST,\n",
            "        grpc: Status::FailedPrecondition,",
        ),
        breaks: &["P-02"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "a reused key is aborted",
        file: TABLE,
        find: concat!(
            "status: StatusCode::UNPROCESSABLE_ENTITY,\n",
            "        grpc: Status::FailedPrecondition,",
        ),
        replace: concat!("status: StatusCode::UNPROCESSABLE_ENTITY,\n", "        grpc: Status::Aborted,",),
        breaks: &["P-02"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "a running call is unavailable",
        file: TABLE,
        find: concat!(
            "name: \"in-progress\",\n",
            "        status: StatusCode::CONFLICT,\n",
            "        grpc: Status::Aborted,",
        ),
        replace: concat!(
            "name: \"in-progress\",\n",
            "        status: StatusCode::CONFLICT,\n",
            "        grpc: Status::Unavailable,",
        ),
        breaks: &["P-02"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "a store that is down is a secret",
        file: TABLE,
        find: concat!(
            "name: \"store-unavailable\",\n",
            "        status: StatusCode::SERVICE_UNAVAILABLE,\n",
            "        grpc: Status::Unavailable,",
        ),
        replace: concat!(
            "name: \"store-unavailable\",\n",
            "        status: StatusCode::SERVICE_UNAVAILABLE,\n",
            "        grpc: Status::Internal,",
        ),
        breaks: &["P-02"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "the timeout counts",
        file: REQUEST,
        find: "for name in &rules.headers {",
        replace: "for name in rules.headers.iter().chain(&[HeaderName::from_static(\"grpc-timeout\")]) {",
        breaks: &["P-02"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "calls that nobody listed are covered",
        file: LAYER,
        find: "&& self.policy.classifier != Classifier::Grpc",
        replace: "&& self.policy.classifier == Classifier::GraphQl",
        breaks: &["P-02"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "any signature is good",
        file: SIGNATURE,
        find: "if good { Ok(()) } else { Err(WebhookFault::SignatureWrong) }",
        replace: "if good { Ok(()) } else { Ok(()) }",
        breaks: &["P-03"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "any age is good",
        file: SIGNATURE,
        find: "if now.abs_diff(signed_at) > TOLERANCE.as_secs() {",
        replace: "if now.abs_diff(signed_at) > u64::MAX - TOLERANCE.as_secs() {",
        breaks: &["P-03"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "an event is known by its id alone",
        file: CLOUD_EVENTS,
        find: "serde_json::Value::from(vec![source, id])",
        replace: "serde_json::Value::from(vec![id])",
        breaks: &["P-03"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "a delivery is known by its signature",
        file: WEBHOOK,
        find: "    key(ID, id(headers, ID)?)\n",
        replace: "    key(ID, id(headers, SIGNATURE)?)\n",
        breaks: &["P-03"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "an id may hold a stop",
        file: WEBHOOK,
        find: "if id.contains(&b'.') {",
        replace: "if id.is_empty() {",
        breaks: &["P-03"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "a webhook that failed is kept",
        file: POLICY,
        find: "        self.outcomes = Outcomes::success_only();\n",
        replace: "        self.outcomes = Outcomes::stripe_v1();\n",
        breaks: &["P-03"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "webhooks are forgotten after a day",
        file: POLICY,
        find: "        self.engine = self.engine.retention(super::webhook::RETENTION);\n",
        replace: "",
        breaks: &["P-03"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "a redelivery must be the same",
        file: POLICY,
        find: "        self.fingerprint.what = super::fingerprint::What::Key;\n",
        replace: "",
        breaks: &["P-03"],
        caught_by: Proof::HttpCases,
    },
];
