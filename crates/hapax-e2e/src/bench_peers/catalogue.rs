//! The peers: what is compared with what, and how each one is started.

use self::Base::{Axum, Express, FastApi, Proxy};
use self::StoreKind::{File, Memory, Nothing, Redis};

/// What a peer is compared with: the first peer on the same base.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Base {
    /// A service on axum.
    Axum,
    /// A service on Express.
    Express,
    /// A service on FastAPI under uvicorn.
    FastApi,
    /// A reverse proxy in front of the axum service.
    Proxy,
}

impl Base {
    /// All of them, in the order of the tables.
    pub(super) const ALL: [Self; 4] = [Axum, Express, FastApi, Proxy];

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Axum => "axum",
            Express => "Express",
            FastApi => "FastAPI",
            Proxy => "proxy",
        }
    }
}

/// Where a peer keeps its records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StoreKind {
    /// It keeps none: a bare service or a plain proxy.
    Nothing,
    /// In the process.
    Memory,
    /// In files that survive a crash.
    File,
    /// On a Redis server.
    Redis,
}

impl StoreKind {
    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Nothing => "–",
            Memory => "memory",
            File => "file",
            Redis => "Redis",
        }
    }
}

/// What is started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Program {
    /// A binary of `peers/rust`, with the name of its store.
    Rust(&'static str, &'static str),
    /// A script of `peers/node`.
    Node(&'static str),
    /// A script of `peers/python`.
    Python(&'static str),
    /// `hapax serve` on its file store.
    Hapax,
    /// nginx with one worker.
    Nginx,
    /// haproxy with one thread.
    Haproxy,
    /// The binary of the crate `idempotent-proxy-server`.
    IdempotentProxy,
}

/// One service or proxy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    /// Its name.
    pub(super) name: &'static str,
    /// What it is compared with.
    pub(super) base: Base,
    /// Where it keeps its records.
    pub(super) store: StoreKind,
    /// How it is started.
    pub(super) program: Program,
    /// The package whose version is printed.
    pub(super) package: &'static str,
    /// What it does other than Hapax, where that explains its figures.
    pub(super) differs: &'static str,
}

impl Peer {
    const fn new(name: &'static str, base: Base, store: StoreKind, program: Program) -> Self {
        Self { name, base, store, program, package: name, differs: "" }
    }

    const fn of(self, package: &'static str) -> Self {
        Self { package, ..self }
    }

    const fn differs(self, differs: &'static str) -> Self {
        Self { differs, ..self }
    }

    /// Whether it is Hapax.
    pub(super) fn is_ours(&self) -> bool {
        matches!(self.program, Program::Hapax | Program::Rust("axum-hapax", _))
    }

    /// Whether it keeps records.
    pub(super) fn is_idempotent(&self) -> bool {
        self.store != Nothing
    }

    /// Its name and its store, which together are unique.
    pub(super) fn title(&self) -> String {
        if self.is_idempotent() { format!("{}, {}", self.name, self.store.name()) } else { self.name.into() }
    }
}

/// All of them. The first one on each base has no idempotency.
pub(super) const PEERS: &[Peer] = &[
    Peer::new("axum, bare", Axum, Nothing, Program::Rust("axum-bare", "")).of("axum"),
    Peer::new("Hapax", Axum, Memory, Program::Rust("axum-hapax", "memory")).of("hapax"),
    Peer::new("axum-idempotent", Axum, Memory, Program::Rust("axum-idempotent", "memory")).differs(
        "It does not claim a key before the handler runs, so a fresh request costs one read and one write without any \
         coordination, and duplicates that arrive together all run.",
    ),
    Peer::new("idempotent", Axum, Memory, Program::Rust("idempotent", "memory"))
        .differs("It compares the bytes of requests by xxHash3, Hapax the meaning of their bodies by SHA-256."),
    Peer::new("Hapax", Axum, File, Program::Rust("axum-hapax", "file")).of("hapax"),
    Peer::new("Hapax", Axum, Redis, Program::Rust("axum-hapax", "redis")).of("hapax"),
    Peer::new("Hapax without its cache", Axum, Redis, Program::Rust("axum-hapax", "redis-uncached")).of("hapax"),
    Peer::new("axum-idempotent", Axum, Redis, Program::Rust("axum-idempotent", "redis")).differs(
        "It does not claim a key before the handler runs, so a fresh request needs no atomic step on the server, and \
         duplicates that arrive together all run.",
    ),
    Peer::new("idempotent", Axum, Redis, Program::Rust("idempotent", "redis"))
        .differs("It compares the bytes of requests by xxHash3, Hapax the meaning of their bodies by SHA-256."),
    Peer::new("Express, bare", Express, Nothing, Program::Node("bare")).of("express"),
    Peer::new("hand-written", Express, Redis, Program::Node("handwritten")).of("ioredis").differs(
        "Express takes several times as long for a request as axum, so the same two or three commands to the server are a \
         smaller part of it. It compares no bodies and does not renew its claim.",
    ),
    Peer::new("express-idempotency", Express, Redis, Program::Node("express-idempotency")).differs(
        "Express takes several times as long for a request as axum, so the commands to the server are a smaller part of it. \
         It claims nothing: it reads, and writes without a condition.",
    ),
    Peer::new("node-idempotency", Express, Redis, Program::Node("node-idempotency"))
        .of("@node-idempotency/core")
        .differs(
            "Express takes several times as long for a request as axum, so the commands to the server are a smaller part \
             of it. A claim never lapses before the record does.",
        ),
    Peer::new("FastAPI, bare", FastApi, Nothing, Program::Python("bare")).of("fastapi"),
    Peer::new("asgi-idempotency-header", FastApi, Redis, Program::Python("asgi_idempotency")).differs(
        "FastAPI takes several times as long for a request as axum, and a replay skips its routing and validation.",
    ),
    Peer::new("nginx", Proxy, Nothing, Program::Nginx),
    Peer::new("haproxy", Proxy, Nothing, Program::Haproxy),
    Peer::new("hapax serve", Proxy, File, Program::Hapax).of("hapax"),
    Peer::new("idempotent-proxy", Proxy, Memory, Program::IdempotentProxy)
        .of("idempotent-proxy-server")
        .differs("It writes nothing to a disk: its records are lost with the process."),
    Peer::new("idempotent-proxy", Proxy, Redis, Program::IdempotentProxy).of("idempotent-proxy-server"),
];

/// The peer without idempotency on the same base.
pub(super) fn bare(base: Base) -> &'static Peer {
    PEERS.iter().find(|peer| peer.base == base).expect("every base has peers")
}

#[cfg(test)]
mod tests;
