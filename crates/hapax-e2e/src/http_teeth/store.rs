//! Defects in the store and its time (D).

use hapax_model::teeth::{Proof, Tooth};

const ENGINE: &str = "crates/hapax/src/engine.rs";
const ENGINE_POLICY: &str = "crates/hapax/src/policy.rs";
const EXCHANGE: &str = "crates/hapax/src/http/exchange.rs";
const LEASE: &str = "crates/hapax/src/engine/lease.rs";
const MEMORY: &str = "crates/hapax/src/memory.rs";
const SOURCE: &str = "crates/hapax/src/http/key_source.rs";
const TRANSITION: &str = "crates/hapax-core/src/transition.rs";
const UNPROTECTED: &str = "crates/hapax/src/http/exchange/unprotected.rs";

pub(super) const TEETH: &[Tooth] = &[
    Tooth {
        name: "nothing expires",
        file: TRANSITION,
        find: "due(record, now) == Some(Due::Expired)",
        replace: "due(record, now) == Some(Due::Dropped)",
        breaks: &["D-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "retention counts from the claim",
        file: TRANSITION,
        find: "Record { expires_at: now.after(retention), ..changed(record, status, now) }",
        replace: "Record { expires_at: record.created_at.after(retention), ..changed(record, status, now) }",
        breaks: &["D-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "half the retention is over",
        file: TRANSITION,
        find: "Record { expires_at: now.after(retention), ..changed(record, status, now) }",
        replace: "Record { expires_at: now.after(retention / 2), ..changed(record, status, now) }",
        breaks: &["D-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "the retention cannot be chosen",
        file: ENGINE,
        find: "        let retention = job.policy.retention;\n",
        replace: "        let retention = Duration::from_secs(24 * 3600);\n",
        breaks: &["D-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "old keys are never refused",
        file: ENGINE_POLICY,
        find: "ExpiredKeys::Refuse => key.made_at()?.checked_add(self.retention),",
        replace: "ExpiredKeys::Refuse => None,",
        breaks: &["D-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "old keys are always refused",
        file: ENGINE_POLICY,
        find: "ExpiredKeys::Run => None,",
        replace: "ExpiredKeys::Run => key.made_at()?.checked_add(self.retention),",
        breaks: &["D-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "a first time in the future is believed",
        file: SOURCE,
        find: "Err(ahead) => ahead.duration() <= AHEAD_MAX,",
        replace: "Err(_) => true,",
        breaks: &["D-02"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "a first time long ago is believed",
        file: SOURCE,
        find: "Ok(age) => age <= *window,",
        replace: "Ok(age) => age <= Duration::MAX - *window,",
        breaks: &["D-02"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "a first time that is none is now",
        file: SOURCE,
        find: "now.duration_since(first_sent(headers, header)?)",
        replace: "now.duration_since(first_sent(headers, header).unwrap_or(now))",
        breaks: &["D-02"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "the process's clock decides about leases",
        file: MEMORY,
        find: concat!("        let now = self.clock.now();\n", "        let decision = transition::claim(",),
        replace: concat!(
            "        let now = SystemClock::new().now();\n",
            "        let decision = transition::claim(",
        ),
        breaks: &["D-02"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "without a store everything runs",
        file: EXCHANGE,
        find: "let spare = (policy.on_store_error == OnStoreError::Pass)",
        replace: "let spare = (policy.on_store_error != OnStoreError::Pass)",
        breaks: &["D-03"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "what passes runs beside itself",
        file: LEASE,
        find: "(!is_held && slots.passing.insert(id))",
        replace: "(slots.passing.insert(id) || !is_held)",
        breaks: &["D-03"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "what ran unprotected is not marked",
        file: UNPROTECTED,
        find: "    response.headers_mut().insert(PROTECTED.clone(), HeaderValue::from_static(\"false\"));\n",
        replace: "",
        breaks: &["D-03"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "what is not recorded is not answered",
        file: ENGINE,
        find: concat!(
            "                self.record_behind(job, hold, finish, started);\n",
            "                false\n",
        ),
        replace: "                return Err(Refusal::Store(error));\n",
        breaks: &["D-04"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "nobody tries to record it later",
        file: ENGINE,
        find: "                self.record_behind(job, hold, finish, started);\n",
        replace: "                drop(hold);\n",
        breaks: &["D-04"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "what could not be recorded is given free",
        file: ENGINE,
        find: "                self.record_behind(job, hold, finish, started);\n",
        replace: "                self.record_behind(job, hold, Finish::Release(None), started);\n",
        breaks: &["D-04"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "a claim in doubt fails",
        file: ENGINE,
        find: "if tries < CLAIM_TRIES && (error.is_unknown() || in_doubt && error.is_transient()) =>",
        replace: "if tries > CLAIM_TRIES && (error.is_unknown() || in_doubt && error.is_transient()) =>",
        breaks: &["D-05"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "a claim in doubt is made anew",
        file: ENGINE,
        find: "                    in_doubt = true;\n",
        replace: concat!(
            "                    in_doubt = true;\n",
            "                    ask.nonce = Nonce::random();\n",
        ),
        breaks: &["D-05"],
        caught_by: Proof::HttpCases,
    },
];
