//! `chaos_teeth`: puts defects into a copy of the sources and expects the proof under faults to find each.

use std::process::ExitCode;

use hapax_e2e::chaos::teeth::TEETH;
use hapax_e2e::rig::args::find_planted_defects;

fn main() -> anyhow::Result<ExitCode> {
    find_planted_defects(TEETH, "chaos-teeth")
}
