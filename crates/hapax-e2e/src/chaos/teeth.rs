//! Planted defects that the proof under faults must find, each within one short run on Redis.

use hapax_model::teeth::{Proof, Tooth};

const PERMIT: &str = "crates/hapax/src/engine/permit.rs";

/// Every defect.
pub const TEETH: &[Tooth] = &[
    Tooth {
        name: "the fence is off: a release ignores the owner of the claim",
        file: "crates/hapax-store-redis/src/lua/release.lua",
        find: "if not record or record.nonce ~= ARGV[1] or is_pinned(record) then return 'lost' end\n",
        replace: "if not record then return 'lost' end\n",
        breaks: &["doubles"],
        caught_by: Proof::Chaos,
    },
    Tooth {
        name: "an execution is answered before it is recorded",
        file: PERMIT,
        find: "        let fenced = self.record(&finish, ended_at, RECORD_TRIES).await;\n",
        replace: concat!(
            "        if matches!(finish, Finish::Pin(_)) {\n",
            "            self.record_in_background(finish, ended_at);\n",
            "            return Recording::Applied;\n",
            "        }\n",
            "        let fenced = self.record(&finish, ended_at, RECORD_TRIES).await;\n",
        ),
        breaks: &["lost"],
        caught_by: Proof::Chaos,
    },
    Tooth {
        // A run whose caller hangs up moves to another task.
        name: "a caller that hangs up frees the key",
        file: PERMIT,
        find: "        let ended = AssertUnwindSafe(async move { work(context).await }).catch_unwind().await;\n",
        replace: concat!(
            "        let began_in = tokio::task::try_id();\n",
            "        let mut ended = AssertUnwindSafe(async move { work(context).await }).catch_unwind().await;\n",
            "        if let Ok(ended) = &mut ended\n",
            "            && tokio::task::try_id() != began_in\n",
            "        {\n",
            "            ended.finish = Finish::Release(None);\n",
            "        }\n",
        ),
        breaks: &["doubles"],
        caught_by: Proof::Chaos,
    },
];
