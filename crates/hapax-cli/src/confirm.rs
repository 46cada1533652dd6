//! The question before something is changed.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::failure::{Code, Failure};

/// Goes on when `yes` was given or a person at the terminal says so.
pub(crate) fn confirm(yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        return Err(Failure::new(Code::NotConfirmed, "nobody is there to confirm this")
            .hint("look at what would be done, then add --yes"));
    }
    let asked = ask(&mut io::stdin().lock(), &mut io::stderr().lock()).map_err(Failure::output)?;
    if asked { Ok(()) } else { Err(Failure::new(Code::NotConfirmed, "not confirmed, nothing was changed")) }
}

/// Only the whole word counts: a stray key press must not free an operation for a second run.
fn ask(input: &mut impl BufRead, prompt: &mut impl Write) -> io::Result<bool> {
    write!(prompt, "Type yes to go on: ")?;
    prompt.flush()?;
    let mut answer = String::new();
    input.read_line(&mut answer)?;
    Ok(answer.trim() == "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_word_counts() {
        for (typed, expected) in
            [("yes\n", true), ("y\n", false), ("\n", false), ("", false), ("no\n", false)]
        {
            let mut prompt = Vec::new();
            assert_eq!(ask(&mut typed.as_bytes(), &mut prompt).unwrap(), expected, "{typed:?}");
            assert!(!prompt.is_empty());
        }
    }
}
