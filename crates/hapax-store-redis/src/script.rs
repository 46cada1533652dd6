//! Scripts: their texts, assembled once, and the digests by which the server caches them.
//!
//! This module knows which server version takes which text. CallBody the scripts do is written in `lua/`.

use std::sync::LazyLock;

use redis::Cmd;
use sha1::{Digest as _, Sha1};

/// Which commands and script flags a server supports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CommandSet {
    /// Redis 7 and newer: `SET` accepts `NX GET`, and scripts declare flags.
    Redis7,
    /// Redis 6.2: every claim is a script.
    Redis6,
}

/// One script for one server version.
#[derive(Debug)]
pub(crate) struct Script {
    text: String,
    digest: String,
}

/// All scripts for one server version.
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
    pub(crate) generation: Script,
}

/// The script flags a script needs.
#[derive(Clone, Copy)]
enum Needs {
    /// DataState for a new record: refused when there is none left.
    Room,
    /// Must also run when memory is full: an owner must be able to finish.
    Nothing,
    /// Reads only.
    Reading,
}

impl CommandSet {
    /// The scripts for this version.
    pub(crate) fn scripts(self) -> &'static Scripts {
        static REDIS_7: LazyLock<Scripts> = LazyLock::new(|| Scripts::new(CommandSet::Redis7));
        static REDIS_6: LazyLock<Scripts> = LazyLock::new(|| Scripts::new(CommandSet::Redis6));
        match self {
            Self::Redis7 => &REDIS_7,
            Self::Redis6 => &REDIS_6,
        }
    }
}

impl Scripts {
    fn new(commands: CommandSet) -> Self {
        let script = |needs, body| Script::new(commands, needs, body);
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
            generation: script(Needs::Nothing, include_str!("lua/generation.lua")),
        }
    }
}

impl Script {
    fn new(commands: CommandSet, needs: Needs, body: &str) -> Self {
        let flags = match (commands, needs) {
            (CommandSet::Redis6, Needs::Room | Needs::Reading) => "local NEEDS_NO_ROOM = false\n",
            (CommandSet::Redis6, Needs::Nothing) => "local NEEDS_NO_ROOM = true\n",
            (CommandSet::Redis7, Needs::Room) => "#!lua\nlocal NEEDS_NO_ROOM = false\n",
            (CommandSet::Redis7, Needs::Nothing) => "#!lua flags=allow-oom\nlocal NEEDS_NO_ROOM = false\n",
            (CommandSet::Redis7, Needs::Reading) => "#!lua flags=no-writes\nlocal NEEDS_NO_ROOM = false\n",
        };
        let text = format!("{flags}{}\n{body}", include_str!("lua/record.lua"));
        let digest = Sha1::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
        Self { text, digest }
    }

    /// Calls the script by its digest, on one key.
    pub(crate) fn by_digest(&self, key: &str, arguments: &[&[u8]]) -> Cmd {
        Self::call("EVALSHA", &self.digest, key, arguments)
    }

    /// Calls the script by its text, for a server that does not have it cached.
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

/// A command with capacity for this many arguments, with `bytes` in keys and values.
pub(crate) fn sized(arguments: usize, bytes: usize) -> Cmd {
    // For keywords and numbers: a reallocation costs more than a few unused bytes.
    const REST: usize = 48;
    Cmd::with_capacity(arguments, bytes + REST)
}
