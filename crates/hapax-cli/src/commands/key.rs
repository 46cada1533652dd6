//! `hapax key`: generates and derives keys. No store is opened.

use hapax_core::Key;
use serde_json::json;

use crate::args::KeyCommand;
use crate::failure::{Code, Failure};
use crate::output::Output;

pub(crate) fn run(command: &KeyCommand, output: Output) -> Result<(), Failure> {
    let key = match command {
        KeyCommand::New => Key::random(),
        KeyCommand::Derive { entity, action, params } => derive(entity, action, params.as_deref())?,
    };
    if output.json { output.document(&json!({ "key": key.as_str() })) } else { output.text(key.as_str()) }
}

fn derive(entity: &str, action: &str, params: Option<&str>) -> Result<Key, Failure> {
    Key::derive_json(entity, action, params.unwrap_or("null")).map_err(|error| {
        Failure::new(Code::InputInvalid, "cannot derive a key from these params")
            .because(error)
            .hint("--params takes JSON; in a shell, put it between single quotes: --params '{\"amount\": 5}'")
    })
}
