//! Every defect of a list, one after the other, told line by line.

use anyhow::Result;

use super::copy::Copy;
use super::{Proof, Tooth};

/// How many defects there were, and how many of them were caught.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tally {
    /// Found by their proofs.
    pub caught: u32,
    /// Planted.
    pub planted: u32,
}

/// Plants each defect that is [about](Tooth::is_about) `only` and expects its proof to find it. The proofs run once without any
/// defect first: what is found then proves nothing later.
///
/// # Errors
/// When a proof finds something without a defect or does not come to its end then, and when the copy cannot be written.
#[allow(clippy::print_stdout, reason = "it is what the commands are run for")]
pub fn run<'t>(teeth: impl IntoIterator<Item = &'t Tooth>, only: &str) -> Result<Tally> {
    let teeth: Vec<_> = teeth.into_iter().filter(|tooth| tooth.is_about(only)).collect();
    let copy = Copy::new()?;
    for proof in Proof::ALL.into_iter().filter(|proof| teeth.iter().any(|tooth| tooth.caught_by == *proof)) {
        let control = copy.control(proof)?;
        println!("control of {proof:?} without a defect is clean in {:.1} s", control.seconds);
    }
    let mut tally = Tally { caught: 0, planted: 0 };
    for tooth in teeth {
        let breaks = tooth.breaks.join(" or ");
        tally.planted += 1;
        // One that cannot be tried is told like one that was not caught: the others may be as bad.
        let outcome = match copy.bite(tooth)? {
            Ok(outcome) => outcome,
            Err(error) => {
                println!("tooth {} breaks {breaks} NOT TRIED: {error:#}", tooth.name);
                continue;
            }
        };
        if outcome.caught(tooth) {
            tally.caught += 1;
            println!("tooth {} breaks {breaks} caught by {outcome} in {:.1} s", tooth.name, outcome.seconds);
        } else if outcome.broken.is_empty() {
            println!("tooth {} breaks {breaks} NOT CAUGHT", tooth.name);
        } else {
            println!("tooth {} breaks {breaks} NOT CAUGHT, but {outcome} is broken", tooth.name);
        }
    }
    Ok(tally)
}
