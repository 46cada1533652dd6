//! Planted defects in the HTTP layer that its cases must find: one for each core rule of the protocol.
//!
//! The text of each occurs one time in its file; a test checks that.

use hapax_model::teeth::{Proof, Tooth};

const CLASSIFY: &str = "crates/hapax/src/http/classify.rs";
const DELIVERY: &str = "crates/hapax/src/http/webhook/delivery.rs";
const DETACHED: &str = "crates/hapax/src/engine/detached.rs";
const DIRECT: &str = "crates/hapax-core/src/fingerprint/direct.rs";
const CONCLUDE: &str = "crates/hapax/src/http/exchange/conclude.rs";
const ENTRY: &str = "crates/hapax/src/http/exchange/entry.rs";
const EXCHANGE: &str = "crates/hapax/src/http/exchange.rs";
const FIELDS: &str = "crates/hapax/src/http/capture/fields.rs";
const FINGERPRINT: &str = "crates/hapax-core/src/fingerprint.rs";
const PERMIT: &str = "crates/hapax/src/engine/permit.rs";
const RULES: &str = "crates/hapax-core/src/key/rules.rs";
const SCOPE: &str = "crates/hapax/src/http/scope.rs";
const TRANSITION: &str = "crates/hapax-core/src/transition.rs";

/// Every defect, in the order of the protocol's sections.
pub const TEETH: &[Tooth] = &[
    Tooth {
        name: "a required key may be missing",
        file: ENTRY,
        find: "KeyMode::Required => refused(route, policy.key_missing()),",
        replace: "KeyMode::Required => Entry::Pass(Passing::UNTOUCHED),",
        breaks: &["M-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "a bad key is ignored",
        file: ENTRY,
        find: "Err(fault) => refused(route, Problem::of(Code::KeyInvalid, fault.detail())),",
        replace: "Err(_) => Entry::Pass(Passing::UNTOUCHED),",
        breaks: &["K-05"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "the first of several lines counts",
        file: RULES,
        find: "if further > 0 {",
        replace: "if false {",
        breaks: &["K-06"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "callers share their keys",
        file: SCOPE,
        find: "(Some(principal), _) => Ok(scope.principal(principal)),",
        replace: "(Some(_), _) => Ok(scope),",
        breaks: &["S-05"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "fingerprints are not compared",
        file: FINGERPRINT,
        find: "words(&self.digest).ct_eq(&words(&other.digest)).into()",
        replace: "true",
        breaks: &["F-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "numbers are floats",
        file: DIRECT,
        find: "            _ => match self.reader.value() {\n",
        replace: concat!(
            "            _ if self.reader.peek().is_some_and(|byte| byte.is_ascii_digit()) => {\n",
            "                self.write();\n",
            "                let Ok(Json::Number(number)) = self.reader.value() else { return None };\n",
            "                let float = number.text.parse::<f64>().unwrap_or_default();\n",
            "                self.out.extend_from_slice(float.to_string().as_bytes());\n",
            "                self.written = self.reader.at();\n",
            "                Some(())\n",
            "            }\n",
            "            _ => match self.reader.value() {\n",
        ),
        breaks: &["F-05"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "a running operation may be claimed",
        file: TRANSITION,
        find: "            Decision::keep(Claim::Busy { lease_left: lease_until.since(now) })",
        replace: "            acquire(Some(record), ask, now)",
        breaks: &["X-01", "X-05"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "completion ignores the nonce",
        file: TRANSITION,
        find: concat!(
            "    retention: Duration,\n",
            "    now: Timestamp,\n",
            ") -> Decision<Fenced> {\n",
            "    match held(record, lease.fence.nonce) {\n",
        ),
        replace: concat!(
            "    retention: Duration,\n",
            "    now: Timestamp,\n",
            ") -> Decision<Fenced> {\n",
            "    let _ = lease;\n",
            "    match record {\n",
        ),
        breaks: &["X-02"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "an execution ends with its connection",
        file: DETACHED,
        find: "            runtime.spawn(future);\n",
        replace: "            drop((future, runtime));\n",
        breaks: &["X-06"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "a gateway error frees the key",
        file: CLASSIFY,
        find: concat!(
            "            .with_class(Outcome::Release, 5)\n",
            "            .with(Outcome::Uncertain, &GATEWAY)\n",
        ),
        replace: concat!(
            "            .with_class(Outcome::Release, 5)\n",
            "            .with(Outcome::Release, &GATEWAY)\n",
        ),
        breaks: &["X-11"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "a broken response counts as no effect",
        file: CONCLUDE,
        find: "let finish = Finish::Uncertain(Reason::Truncated);",
        replace: "let finish = Finish::Release(None);",
        breaks: &["X-10"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "cookies are replayed",
        file: FIELDS,
        find: "(self.set_cookie || *name != SET_COOKIE)",
        replace: "!name.as_str().is_empty()",
        breaks: &["R-05"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "in progress takes precedence over reused",
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
        name: "without a store every request runs",
        file: EXCHANGE,
        find: "if policy.on_store_error == OnStoreError::Pass => {",
        replace: "if policy.on_store_error != OnStoreError::Pass => {",
        breaks: &["D-03"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "an unrecorded response is withheld",
        file: PERMIT,
        find: "            recording => Ok(Execution::Ran { value, recorded: recording == Recording::Applied }),\n",
        replace: concat!(
            "            Recording::Pending => Err(Refusal::Superseded { id }),\n",
            "            recording => Ok(Execution::Ran { value, recorded: recording == Recording::Applied }),\n",
        ),
        breaks: &["D-04"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "any signature is accepted",
        file: DELIVERY,
        find: "if !secrets.have_signed(&bytes, &signatures) {",
        replace: "if !secrets.have_signed(&bytes, &signatures) && bytes.is_empty() {",
        breaks: &["P-03"],
        caught_by: Proof::HttpCases,
    },
];
