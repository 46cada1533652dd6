//! The catalogue of benchmarks and proofs: one table for `bench`, one for `prove`, one for the short runs (slices) of
//! `test`. Goal names are stable: scripts rely on them.

use std::time::Duration;

/// One program of the workspace and how to run it.
#[derive(Debug)]
pub(crate) struct Program {
    /// The crate.
    pub(crate) package: &'static str,
    /// The name under the crate's `src/bin`, or under `benches` for gungraun. Ignored for libfuzzer, which runs all targets.
    pub(crate) bin: &'static str,
    /// The runner.
    pub(crate) runner: Runner,
    /// The required features of the crate.
    pub(crate) features: &'static [&'static str],
    /// A default flag, with its value if it has one; replaced when the same flag is typed.
    pub(crate) flags: &'static [&'static str],
    /// The cargo arguments that select the binaries of another crate that it starts. They are built first.
    pub(crate) starts: &'static [&'static str],
    /// Whether it is the mutation test of the next program: it runs first and takes no typed flags.
    pub(crate) is_teeth: bool,
}

/// How to run a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Runner {
    /// Directly.
    Direct,
    /// Gungraun, under valgrind: for instruction counts.
    Gungraun,
    /// Libfuzzer, for each target of `fuzz/`, which is not a member of the workspace.
    Libfuzzer,
}

/// One benchmark or one long proof.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The name on the command line.
    pub(crate) name: &'static str,
    /// A one-line description.
    pub(crate) about: &'static str,
    /// Run in order; typed flags go to the first that is not a mutation test.
    pub(crate) programs: &'static [Program],
    /// The goals that the programs must print.
    pub(crate) goals: &'static [&'static str],
}

/// A bounded run of a proof, required for every change.
#[derive(Debug)]
pub(crate) struct Slice {
    /// The program and its bounds.
    pub(crate) program: Program,
    /// The goals it must print.
    pub(crate) goals: &'static [&'static str],
    /// The time limit. The model takes under two minutes on two busy cores, with its build.
    pub(crate) limit: Duration,
}

impl Program {
    /// A program that runs directly and needs no features.
    const fn new(package: &'static str, bin: &'static str, flags: &'static [&'static str]) -> Self {
        Self { package, bin, runner: Runner::Direct, features: &[], flags, starts: &[], is_teeth: false }
    }

    const fn with(self, features: &'static [&'static str]) -> Self {
        Self { features, ..self }
    }

    const fn starting(self, built: &'static [&'static str]) -> Self {
        Self { starts: built, ..self }
    }

    const fn teeth(self) -> Self {
        Self { is_teeth: true, ..self }
    }

    const fn run_by(self, runner: Runner) -> Self {
        Self { runner, ..self }
    }
}

const E2E: &str = "hapax-e2e";
const MODEL: &str = "hapax-model";
const CLI: &[&str] = &["--package", "hapax-cli"];
/// With the file and memory stores only: the limits on size and memory apply to this build.
const SMALL_CLI: &[&str] = &["--package", "hapax-cli", "--no-default-features"];
const FUZZ: &str = "hapax-fuzz";

/// `cargo xtask bench`.
pub(crate) const BENCHES: &[Entry] = &[
    Entry {
        name: "engine",
        about: "overhead of once() over a bare task, on the memory store; instruction counts",
        programs: &[
            Program::new(E2E, "bench_engine", &[]),
            Program::new(E2E, "instructions", &[]).with(&["instructions"]).run_by(Runner::Gungraun),
        ],
        goals: &["engine-once", "macro-added-us"],
    },
    Entry {
        name: "store",
        about: "pairs of claim and completion per second in the file store, against plain SQLite; growth",
        programs: &[Program::new(E2E, "bench_store", &[]).with(&["engines"])],
        goals: &["file-pairs", "file-growth"],
    },
    Entry {
        name: "redis",
        about: "the Redis store against redis-benchmark sending the same commands; axum with the layer on it",
        programs: &[Program::new(E2E, "bench_redis", &[])],
        goals: &["redis-fresh", "redis-replay", "layer-redis-fresh", "layer-redis-replay"],
    },
    Entry {
        name: "postgres",
        about: "the PostgreSQL store against pgbench committing one row at a time; growth (--live-records N)",
        programs: &[Program::new(E2E, "bench_postgres", &[])],
        goals: &["postgres-coalesced", "postgres-growth", "postgres-sweep"],
    },
    Entry {
        name: "http",
        about: "axum with the layer (for_axum) against bare axum: fresh keys, replays, uncovered requests (--rounds N)",
        programs: &[Program::new(E2E, "bench_http", &[])],
        goals: &[
            "layer-memory-fresh",
            "layer-memory-replay",
            "layer-file-fresh",
            "layer-file-replay",
            "layer-pass",
        ],
    },
    Entry {
        name: "client",
        about: "microseconds that hapax-client adds to a POST of bare reqwest on the loopback interface (--rounds N)",
        programs: &[Program::new(E2E, "bench_client", &[])],
        goals: &["client-added-us"],
    },
    Entry {
        name: "sidecar",
        about: "hapax serve on the file store against nginx; its size, start and memory (--rounds N)",
        programs: &[
            Program::new(E2E, "bench_sidecar", &[]).starting(CLI),
            Program::new(E2E, "bench_sidecar", &["--footprint"]).starting(SMALL_CLI),
        ],
        goals: &[
            "sidecar-fresh",
            "sidecar-replay",
            "sidecar-pass",
            "sidecar-pass-cpu",
            "sidecar-size-mib",
            "sidecar-start-ms",
            "sidecar-idle-mib",
            "sidecar-slow-connection-bytes",
            "sidecar-connection-cap",
            "unread-answers-rss",
        ],
    },
    Entry {
        name: "peers",
        about: "Hapax beside its alternatives, speed and behaviour (--rounds N, --seconds N, --write for docs/comparison.md)",
        programs: &[Program::new(E2E, "bench_peers", &[]).starting(CLI)],
        goals: &[
            "peers-ahead-memory-fresh",
            "peers-ahead-memory-replay",
            "peers-ahead-redis-fresh",
            "peers-ahead-redis-replay",
            "peers-ahead-sidecar-fresh",
            "peers-ahead-sidecar-replay",
        ],
    },
];

/// `cargo xtask prove`.
pub(crate) const PROOFS: &[Entry] = &[
    Entry {
        name: "model",
        about: "every interleaving of three executors, and of a consumer of events; every planted defect must be caught",
        programs: &[
            Program::new(MODEL, "model", &["--executors", "3"]),
            Program::new(MODEL, "events_model", &["--bounds", "large"]),
            Program::new(MODEL, "teeth", &[]),
        ],
        goals: &["model-violations", "events-model-violations", "events-model-teeth", "model-teeth"],
    },
    Entry {
        name: "simulation",
        about: "every scenario, await point and fault, then random histories (--histories N, --seed N)",
        programs: &[Program::new(E2E, "simulation", &[])],
        goals: &["simulation-violations", "simulation-faults-fired"],
    },
    Entry {
        name: "crash",
        about: "the file store under kill -9 and under a disk that loses unsynced writes (--rounds N)",
        programs: &[Program::new(E2E, "crash", &[])],
        goals: &["crash-lost", "crash-busy-kills"],
    },
    Entry {
        name: "flips",
        about: "one bit flipped in a file store at rest: no operation runs again (--flips N, --seed N)",
        programs: &[Program::new(E2E, "flips", &[])],
        goals: &["flips-executed-again", "flips-wrong", "flips-teeth"],
    },
    Entry {
        name: "http-teeth",
        about: "each rule of the HTTP layer switched off: a case of the rule must fail (--only TEXT)",
        programs: &[Program::new(E2E, "http_teeth", &[]), Program::new(E2E, "http_cases", &[])],
        goals: &["http-teeth"],
    },
    Entry {
        name: "fuzz",
        about: "coverage-guided fuzzing of every parser (--seconds N for each, --target NAME)",
        programs: &[Program::new(FUZZ, "*", &["--seconds", "300"]).run_by(Runner::Libfuzzer)],
        goals: &["fuzz-crashes"],
    },
    Entry {
        name: "http",
        about: "50 identical concurrent requests, and clients that disconnect (--rounds N, --disconnects N)",
        programs: &[Program::new(E2E, "http_rounds", &[])],
        goals: &["http-executions", "http-disconnects"],
    },
    Entry {
        name: "sidecar",
        about: "hapax serve under load and kill -9: every key is retried (--requests N, --kills N)",
        programs: &[Program::new(E2E, "prove_sidecar", &[]).starting(CLI)],
        goals: SIDECAR_GOALS,
    },
    Entry {
        name: "client",
        about: "calls of hapax-client to a flaky service by a process under kill -9 (--calls N, --seed N)",
        programs: &[
            Program::new(E2E, "prove_client", &["--teeth"]).starting(CLI).teeth(),
            Program::new(E2E, "prove_client", &[]).starting(CLI),
        ],
        goals: &[
            "client-teeth",
            "client-doubles",
            "client-missing",
            "client-forgotten",
            "client-changed",
            "client-kills",
            "client-checked",
            "client-resumed",
            "client-uncertain",
        ],
    },
    Entry {
        name: "transactions",
        about: "work in PostgreSQL transactions while processes, server and pooler are killed (--rounds N)",
        programs: &[Program::new(E2E, "prove_transactions", &[])],
        goals: &[
            "transactions-doubles",
            "transactions-lost",
            "transactions-wrong",
            "transactions-stuck",
            "transactions-teeth",
        ],
    },
    Entry {
        name: "chaos",
        about: "sidecars that share a store under all faults (--store NAME, --requests N, --minutes N, --seed N)",
        programs: &[
            Program::new(E2E, "chaos_teeth", &[]).teeth(),
            Program::new(
                E2E,
                "prove_chaos",
                &[
                    "--store",
                    "file,redis,redis-everysec,redis-sentinel,redis-cluster,redis-cluster-failover,postgres,\
                     postgres-pooled,postgres-standby",
                ],
            )
            .starting(CLI),
        ],
        goals: &[
            "chaos-file-doubles",
            "chaos-file-lost",
            "chaos-file-wrong",
            "chaos-file-stuck",
            "chaos-redis-doubles",
            "chaos-redis-lost",
            "chaos-redis-wrong",
            "chaos-redis-stuck",
            "chaos-redis-cluster-doubles",
            "chaos-redis-cluster-lost",
            "chaos-redis-cluster-wrong",
            "chaos-redis-cluster-stuck",
            "chaos-postgres-doubles",
            "chaos-postgres-lost",
            "chaos-postgres-wrong",
            "chaos-postgres-stuck",
            "chaos-postgres-pooled-doubles",
            "chaos-postgres-pooled-lost",
            "chaos-postgres-pooled-wrong",
            "chaos-postgres-pooled-stuck",
            "chaos-postgres-standby-doubles",
            "chaos-postgres-standby-lost",
            "chaos-postgres-standby-wrong",
            "chaos-postgres-standby-stuck",
            "chaos-teeth",
        ],
    },
];

const SIDECAR_GOALS: &[&str] = &["sidecar-doubles", "sidecar-lost", "sidecar-wrong", "sidecar-stuck"];

/// `cargo xtask test`, step `model`.
pub(crate) const MODEL_SLICE: Slice = Slice {
    program: Program::new(MODEL, "model", &["--executors", "2"]),
    goals: &["model-violations"],
    limit: Duration::from_secs(15 * 60),
};

/// `cargo xtask test`, step `events-model`.
pub(crate) const EVENTS_MODEL_SLICE: Slice = Slice {
    program: Program::new(MODEL, "events_model", &["--bounds", "small"]),
    goals: &["events-model-violations", "events-model-teeth"],
    limit: Duration::from_secs(5 * 60),
};

/// `cargo xtask test`, step `simulation`.
pub(crate) const SIMULATION_SLICE: Slice = Slice {
    program: Program::new(E2E, "simulation", &["--histories", "20000"]),
    goals: &["simulation-violations", "simulation-faults-fired"],
    limit: Duration::from_secs(15 * 60),
};

/// `cargo xtask test`, step `crash`.
pub(crate) const CRASH_SLICE: Slice = Slice {
    program: Program::new(E2E, "crash", &["--rounds", "300"]),
    goals: &["crash-lost", "crash-busy-kills"],
    limit: Duration::from_secs(15 * 60),
};

/// `cargo xtask test`, step `fuzz`: the flags of each target.
pub(crate) const FUZZ_SLICE_FLAGS: &[&str] = &["--seconds", "20"];

/// `cargo xtask test`, step `http`.
pub(crate) const HTTP_SLICE: Slice = Slice {
    program: Program::new(E2E, "http_rounds", &["--rounds", "500"]),
    goals: &["http-executions", "http-disconnects"],
    limit: Duration::from_secs(15 * 60),
};

/// `cargo xtask test`, step `sidecar`.
pub(crate) const SIDECAR_SLICE: Slice = Slice {
    program: Program::new(E2E, "prove_sidecar", &["--requests", "6000", "--kills", "6"]).starting(CLI),
    goals: SIDECAR_GOALS,
    limit: Duration::from_secs(15 * 60),
};

/// `cargo xtask test`, step `client`.
pub(crate) const CLIENT_SLICE: Slice = Slice {
    program: Program::new(E2E, "prove_client", &["--calls", "100"]).starting(CLI),
    goals: &[
        "client-doubles",
        "client-missing",
        "client-forgotten",
        "client-changed",
        "client-kills",
        "client-checked",
        "client-resumed",
        "client-uncertain",
    ],
    limit: Duration::from_secs(5 * 60),
};

/// `cargo xtask test`, step `chaos`.
pub(crate) const CHAOS_SLICE: Slice = Slice {
    program: Program::new(E2E, "prove_chaos", &["--store", "redis"]).starting(CLI),
    goals: &["chaos-redis-doubles", "chaos-redis-lost", "chaos-redis-wrong", "chaos-redis-stuck"],
    limit: Duration::from_secs(15 * 60),
};

#[cfg(test)]
mod tests;
