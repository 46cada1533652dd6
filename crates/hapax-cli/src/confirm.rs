//! Confirmation before a record is changed.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::failure::{self, Code, Failure};

/// Returns if `yes` was given or the operator at the terminal confirms.
pub(crate) fn confirm(yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        return Err(Failure::new(Code::NotConfirmed, "confirmation needs a terminal")
            .hint("read what would be done above, then add --yes"));
    }
    let is_confirmed = ask(&mut io::stdin().lock(), &mut io::stderr().lock()).map_err(failure::output)?;
    let refused = || Failure::new(Code::NotConfirmed, "not confirmed, nothing was changed");
    if is_confirmed { Ok(()) } else { Err(refused()) }
}

/// Only the whole word counts: a stray key press must not release an operation for a second run.
fn ask(input: &mut impl BufRead, prompt: &mut impl Write) -> io::Result<bool> {
    write!(prompt, "Type yes to continue: ")?;
    prompt.flush()?;
    let mut answer = String::new();
    input.read_line(&mut answer)?;
    Ok(answer.trim() == "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_word_confirms() {
        for (typed, expected) in
            [("yes\n", true), ("y\n", false), ("\n", false), ("", false), ("no\n", false)]
        {
            let mut prompt = Vec::new();
            assert_eq!(ask(&mut typed.as_bytes(), &mut prompt).unwrap(), expected, "{typed:?}");
            assert!(!prompt.is_empty());
        }
    }
}
