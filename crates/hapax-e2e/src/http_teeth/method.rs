//! Defects in which requests are covered (M).

use hapax_model::teeth::{Proof, Tooth};

const CASES: &str = "crates/hapax-e2e/src/bin/http_cases.rs";
const LAYER: &str = "crates/hapax/src/http/layer.rs";
const POLICY: &str = "crates/hapax/src/http/policy.rs";
const SERVICE: &str = "crates/hapax/src/http/service.rs";

pub(super) const TEETH: &[Tooth] = &[
    Tooth {
        name: "a required key may be missing",
        file: SERVICE,
        find: "KeyMode::Required => Passage::Refused(index, policy.key_missing()),",
        replace: "KeyMode::Required => Passage::Untouched,",
        breaks: &["M-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "an optional key is required",
        file: SERVICE,
        find: "KeyMode::Optional | KeyMode::Off => Passage::Unkeyed(index),",
        replace: "KeyMode::Optional | KeyMode::Off => Passage::Refused(index, policy.key_missing()),",
        breaks: &["M-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "only POST is covered",
        file: POLICY,
        find: "vec![Method::POST, Method::PUT, Method::PATCH]",
        replace: "vec![Method::POST]",
        breaks: &["M-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "the list of methods is not looked at",
        file: LAYER,
        find: "true if policy.methods.contains(method) => Says::Covered,",
        replace: "true => Says::Covered,",
        breaks: &["M-01"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "safe methods are covered",
        file: LAYER,
        find: "true if policy.methods.contains(method) => Says::Covered,",
        replace: "is_coverable if policy.methods.contains(method) || !is_coverable => Says::Covered,",
        breaks: &["M-02"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "DELETE is covered unasked",
        file: POLICY,
        find: "vec![Method::POST, Method::PUT, Method::PATCH]",
        replace: "vec![Method::POST, Method::PUT, Method::PATCH, Method::DELETE]",
        breaks: &["M-03"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "DELETE cannot be covered",
        file: LAYER,
        find: "true if policy.methods.contains(method) => Says::Covered,",
        replace: "true if policy.methods.contains(method) && *method != Method::DELETE => Says::Covered,",
        breaks: &["M-03"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "an upgrade is covered",
        file: SERVICE,
        find: "            _ if is_upgrade(fields) => Passage::Untouched,\n",
        replace: "",
        breaks: &["M-04"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "half an upgrade is one",
        file: SERVICE,
        find: "        && tokens(fields, &CONNECTION).any(|token| token.eq_ignore_ascii_case(b\"upgrade\"))\n",
        replace: "",
        breaks: &["M-04"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "an offer of HTTP/2 is an upgrade",
        file: SERVICE,
        find: "protocol.eq_ignore_ascii_case(b\"h2c\")",
        replace: "protocol.is_empty()",
        breaks: &["M-04"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "CONNECT is covered",
        file: LAYER,
        find: "            true if policy.methods.contains(method) => Says::Covered,\n",
        replace: concat!(
            "            true if policy.methods.contains(method) => Says::Covered,\n",
            "            _ if *method == Method::CONNECT => Says::Covered,\n",
        ),
        breaks: &["M-04"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "off is optional",
        file: LAYER,
        find: "            true if policy.key == KeyMode::Off => Says::Off,\n",
        replace: "",
        breaks: &["M-05"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "optional is off",
        file: LAYER,
        find: "policy.key == KeyMode::Off",
        replace: "policy.key != KeyMode::Required",
        breaks: &["M-05"],
        caught_by: Proof::HttpCases,
    },
    Tooth {
        name: "the layer stands before those that refuse",
        file: CASES,
        find: "Gate::new(layer.layer(origin))",
        replace: "layer.layer(Gate::new(origin))",
        breaks: &["M-06"],
        caught_by: Proof::HttpCases,
    },
];
