//! `http_teeth`: switches each rule of the HTTP layer off, one at a time, and expects a case of that rule to fail.

use std::process::ExitCode;

use hapax_e2e::http_teeth::TEETH;
use hapax_e2e::rig::args::find_planted_defects;

fn main() -> anyhow::Result<ExitCode> {
    find_planted_defects(TEETH, "http-teeth")
}
