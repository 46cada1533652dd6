//! JSON values back to text. How names, strings and numbers are spelled is for a [`Spelling`] to say.

use super::{Json, Number};

/// One way to write JSON.
pub(crate) trait Spelling {
    /// Why a value cannot be written so.
    type Error;

    /// Between two items or members.
    const COMMA: &'static str;
    /// Between a name and its value.
    const COLON: &'static str;

    /// Writes a string with its quotes.
    fn string(text: &mut String, content: &str);
    /// Writes a number.
    fn number(text: &mut String, number: &Number<'_>) -> Result<(), Self::Error>;
}

/// Appends the value to the text, members in the order they have. Recurses as deep as the reader did.
pub(crate) fn print<S: Spelling>(text: &mut String, value: &Json<'_>) -> Result<(), S::Error> {
    match value {
        Json::Null => text.push_str("null"),
        Json::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Json::Number(number) => S::number(text, number)?,
        Json::String(content) => S::string(text, content),
        Json::Array(items) => {
            text.push('[');
            let mut separator = "";
            for item in items {
                text.push_str(separator);
                print::<S>(text, item)?;
                separator = S::COMMA;
            }
            text.push(']');
        }
        Json::Object(members) => {
            text.push('{');
            let mut separator = "";
            for (name, value) in members {
                text.push_str(separator);
                S::string(text, name);
                text.push_str(S::COLON);
                print::<S>(text, value)?;
                separator = S::COMMA;
            }
            text.push('}');
        }
    }
    Ok(())
}
