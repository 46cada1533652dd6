//! Runs every defect of a list and prints one line for each.

use anyhow::Result;

use super::copy::WorkspaceCopy;
use super::{Proof, Tooth};

/// The number of planted and of caught defects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tally {
    /// Found by their proofs.
    pub caught: u32,
    /// Planted.
    pub planted: u32,
}

/// Plants each defect that is [about](Tooth::is_about) `only` and expects its proof to find it. Each proof first runs
/// without a defect and must find nothing.
///
/// # Errors
/// When a proof finds a violation without a defect or does not run to its end, and when the copy cannot be written.
#[allow(clippy::print_stdout, reason = "the output of the commands")]
pub fn run<'t>(teeth: impl IntoIterator<Item = &'t Tooth>, only: &str) -> Result<Tally> {
    let teeth: Vec<_> = teeth.into_iter().filter(|tooth| tooth.is_about(only)).collect();
    let copy = WorkspaceCopy::new()?;
    for proof in Proof::ALL.into_iter().filter(|proof| teeth.iter().any(|tooth| tooth.caught_by == *proof)) {
        let run = copy.run_without_defect(proof)?;
        println!("{proof:?} without a defect finds nothing, in {:.1} s", run.seconds);
    }
    let mut tally = Tally { caught: 0, planted: 0 };
    for tooth in teeth {
        let breaks = tooth.breaks.join(" or ");
        tally.planted += 1;
        // A defect that does not apply counts as not caught, and the run continues.
        let run = match copy.run_with_defect(tooth)? {
            Ok(run) => run,
            Err(error) => {
                println!("tooth {} breaks {breaks} NOT TRIED: {error:#}", tooth.name);
                continue;
            }
        };
        if run.caught(tooth) {
            tally.caught += 1;
            println!("tooth {} breaks {breaks} caught by {run} in {:.1} s", tooth.name, run.seconds);
        } else if run.broken.is_empty() {
            println!("tooth {} breaks {breaks} NOT CAUGHT", tooth.name);
        } else {
            println!("tooth {} breaks {breaks} NOT CAUGHT, but {run} is broken", tooth.name);
        }
    }
    Ok(tally)
}
