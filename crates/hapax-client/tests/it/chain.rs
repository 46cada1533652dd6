//! The services of the example `chain` as processes: each is killed before and after its effect.

#![allow(clippy::print_stdout, reason = "the example prints what happens")]

use std::process::Command;

use hold::Point;
use processes::{Chain, SERVICES};

#[path = "../../examples/chain/hold.rs"]
mod hold;
#[path = "../../examples/chain/processes.rs"]
mod processes;
#[path = "../../examples/chain/services.rs"]
mod services;
#[path = "../../examples/chain/story.rs"]
mod story;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_service_that_is_killed_has_one_effect_for_each_order() {
    let folder = tempfile::tempdir().unwrap();
    // This program again: its only test that runs is a service.
    let program = || {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--exact", "chain::service_process", "--nocapture"]);
        Ok(command)
    };
    let mut chain = Chain::start(folder.path(), program).unwrap();
    for number in 0..SERVICES.len() {
        for point in [Point::BeforeEffect, Point::AfterEffect] {
            story::kill_with_an_order(&mut chain, number, point).await.unwrap();
        }
    }
}

/// The process that the other test starts. By itself it does nothing.
#[tokio::test]
async fn service_process() {
    if processes::is_service() {
        processes::serve().await.unwrap();
    }
}
