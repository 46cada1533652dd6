//! Operations in PostgreSQL transactions while processes, the server and the pooler are killed with SIGKILL.
//!
//! Several processes send orders with the same keys, each until it is acknowledged. An order inserts a row with a unique
//! number, and the number is its answer. So the table is the effect log: a key with two rows was doubled, an answer of a
//! key without a row was lost, and one that is not the number of a row of its key is wrong.
//!
//! | file | what it owns |
//! |---|---|
//! | `orders.rs` | the process that is killed: how it sends orders, and the planted defects |
//! | `handler.rs` | the same through the HTTP layer and a handler that takes the transaction of its request |
//! | `rig.rs` | the servers, the rounds and the kills |
//!
//! Kills come after so many answers, not after a length of time.

mod handler;
mod orders;
mod rig;

use std::fmt;

use clap::ValueEnum;

pub use self::orders::Orders;
pub use self::rig::{RoundReport, TransactionRig};

/// Where the transaction comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Mode {
    /// The caller begins it, with `once_in`.
    Function,
    /// A handler takes it from its request.
    Handler,
}

/// How processes reach the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ServerPath {
    /// Directly.
    Direct,
    /// Through pgbouncer in transaction mode.
    Pooler,
}

/// A planted defect of the processes, which the audit must find.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Defect {
    /// The effect is written on another connection.
    Apart,
    /// An order is acknowledged before its transaction commits. Functions only: a handler does not commit.
    Early,
}

impl Mode {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Function, Self::Handler];
}

impl ServerPath {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Direct, Self::Pooler];
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Function => "function",
            Self::Handler => "handler",
        })
    }
}

impl fmt::Display for ServerPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Direct => "direct",
            Self::Pooler => "pooler",
        })
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Apart => "apart",
            Self::Early => "early",
        })
    }
}
