//! Work in transactions of PostgreSQL while processes, the server and the pooler are killed with SIGKILL.
//!
//! Processes order the same keys, each until it is acknowledged. The effect of an order is a row with a number of its
//! own, and the number is what is answered. So the table of effects is the witness: a key with two rows was doubled, an
//! answer without its row was lost, one with another key's row or a row that is gone is wrong.
//!
//! | file | what it owns |
//! |---|---|
//! | `orders.rs` | the process that is killed: how it orders, and the defects that must be found |
//! | `handler.rs` | the same through the HTTP layer and a handler that takes the transaction of its request |
//! | `rig.rs` | the servers, the rounds and the kills |
//! | `account.rs` | what was acknowledged, compared with the table |
//!
//! Nothing waits for a length of time: kills come after so many answers.

mod account;
mod handler;
mod orders;
mod rig;

use std::fmt;

use clap::ValueEnum;

pub use self::account::Report;
pub use self::orders::Orders;
pub use self::rig::Rig;

/// Where the transaction comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Mode {
    /// The caller's own, with `once_in`.
    Function,
    /// The one that a handler takes from its request.
    Handler,
}

/// How the server is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Way {
    /// Without anything between.
    Direct,
    /// Through pgbouncer in transaction mode.
    Pooler,
}

/// What the processes do wrong, to see whether it is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Defect {
    /// The effect is written on another connection.
    Apart,
    /// An order is acknowledged before its transaction is committed. Of functions only: a handler does not commit.
    Early,
}

impl Mode {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Function, Self::Handler];
}

impl Way {
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

impl fmt::Display for Way {
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
