//! `hapax man`: prints manual pages generated from the definition of the arguments.

use std::path::Path;

use clap::CommandFactory;
use clap_mangen::Man;

use crate::args::Args;
use crate::failure::{self, Code, Failure};
use crate::output::Output;

pub(crate) fn run(directory: Option<&Path>, output: Output) -> Result<(), Failure> {
    output.never_json("a manual page")?;
    if let Some(directory) = directory {
        let created = std::fs::create_dir_all(directory);
        return created.and_then(|()| clap_mangen::generate_to(Args::command(), directory)).map_err(
            |error| {
                Failure::new(
                    Code::InputInvalid,
                    format!("cannot write manual pages to {}", directory.display()),
                )
                .because(error)
            },
        );
    }
    let mut page = Vec::new();
    Man::new(Args::command()).render(&mut page).map_err(failure::output)?;
    output.text(String::from_utf8_lossy(&page).trim_end())
}
