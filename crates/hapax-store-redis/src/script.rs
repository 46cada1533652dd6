//! The scripts: their texts, put together once, and their digests, by which the server finds them again.
//!
//! This file knows which servers take which text. What the scripts do is written in `lua/`.

use std::sync::LazyLock;

use redis::Cmd;
use sha1::{Digest as _, Sha1};

/// Which commands and script flags a server knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dialect {
    /// Redis 7 and newer: `SET` may both test and answer with what is there, and scripts may say what they need.
    Seven,
    /// Redis 6.2: every claim is a script.
    Six,
}

/// One script as one dialect takes it.
#[derive(Debug)]
pub(crate) struct Script {
    text: String,
    digest: String,
}

/// All scripts in one dialect.
#[derive(Debug)]
pub(crate) struct Scripts {
    pub(crate) claim: Script,
    pub(crate) renew: Script,
    pub(crate) complete: Script,
    pub(crate) release: Script,
    pub(crate) abandon: Script,
    pub(crate) settle: Script,
    pub(crate) delete: Script,
    pub(crate) get: Script,
    pub(crate) head: Script,
    pub(crate) mark: Script,
}

/// What a script may need beside the ordinary.
#[derive(Clone, Copy)]
enum Needs {
    /// Memory for a new record: refused when there is none left.
    Room,
    /// To run also on a server without room: an owner must be able to finish.
    Nothing,
    /// Only to read.
    Reading,
}

impl Dialect {
    /// The scripts for this dialect.
    pub(crate) fn scripts(self) -> &'static Scripts {
        static SEVEN: LazyLock<Scripts> = LazyLock::new(|| Scripts::new(Dialect::Seven));
        static SIX: LazyLock<Scripts> = LazyLock::new(|| Scripts::new(Dialect::Six));
        match self {
            Self::Seven => &SEVEN,
            Self::Six => &SIX,
        }
    }
}

impl Scripts {
    fn new(dialect: Dialect) -> Self {
        let script = |needs, body| Script::new(dialect, needs, body);
        Self {
            claim: script(Needs::Room, include_str!("lua/claim.lua")),
            renew: script(Needs::Nothing, include_str!("lua/renew.lua")),
            complete: script(Needs::Nothing, include_str!("lua/complete.lua")),
            release: script(Needs::Nothing, include_str!("lua/release.lua")),
            abandon: script(Needs::Nothing, include_str!("lua/abandon.lua")),
            settle: script(Needs::Nothing, include_str!("lua/settle.lua")),
            delete: script(Needs::Nothing, include_str!("lua/delete.lua")),
            get: script(Needs::Reading, include_str!("lua/get.lua")),
            head: script(Needs::Reading, include_str!("lua/head.lua")),
            mark: script(Needs::Nothing, include_str!("lua/mark.lua")),
        }
    }
}

impl Script {
    fn new(dialect: Dialect, needs: Needs, body: &str) -> Self {
        let flags = match (dialect, needs) {
            (Dialect::Six, Needs::Room | Needs::Reading) => "local NEEDS_NO_ROOM = false\n",
            (Dialect::Six, Needs::Nothing) => "local NEEDS_NO_ROOM = true\n",
            (Dialect::Seven, Needs::Room) => "#!lua\nlocal NEEDS_NO_ROOM = false\n",
            (Dialect::Seven, Needs::Nothing) => "#!lua flags=allow-oom\nlocal NEEDS_NO_ROOM = false\n",
            (Dialect::Seven, Needs::Reading) => "#!lua flags=no-writes\nlocal NEEDS_NO_ROOM = false\n",
        };
        let text = format!("{flags}{}\n{body}", include_str!("lua/record.lua"));
        let digest = Sha1::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
        Self { text, digest }
    }

    /// Calls the script by its digest, on one key.
    pub(crate) fn by_digest(&self, key: &str, arguments: &[&[u8]]) -> Cmd {
        Self::call("EVALSHA", &self.digest, key, arguments)
    }

    /// Calls the script with its text, for a server that has forgotten it.
    pub(crate) fn by_text(&self, key: &str, arguments: &[&[u8]]) -> Cmd {
        Self::call("EVAL", &self.text, key, arguments)
    }

    fn call(command: &str, script: &str, key: &str, arguments: &[&[u8]]) -> Cmd {
        let bytes: usize = arguments.iter().map(|argument| argument.len()).sum();
        let mut call = sized(4 + arguments.len(), script.len() + key.len() + bytes);
        call.arg(command).arg(script).arg(1).arg(key);
        for argument in arguments {
            call.arg(argument);
        }
        call
    }
}

/// A command that has room for so many arguments from the start, with `bytes` in keys and values.
pub(crate) fn sized(arguments: usize, bytes: usize) -> Cmd {
    // For the words and numbers beside them: a copy for each doubling costs more than a few bytes that stay empty.
    const REST: usize = 48;
    Cmd::with_capacity(arguments, bytes + REST)
}
