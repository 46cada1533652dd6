//! Prints JSON values. A [`JsonStyle`] defines the format of strings, numbers and separators.

use super::{Json, Number};

/// An output format of JSON.
pub(crate) trait JsonStyle {
    /// Why a value cannot be printed in this style.
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

/// Appends the value to the text, members in their present order. Recurses as deep as the parser did.
pub(crate) fn print<S: JsonStyle>(text: &mut String, value: &Json<'_>) -> Result<(), S::Error> {
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
