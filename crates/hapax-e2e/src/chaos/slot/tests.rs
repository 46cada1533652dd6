use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use super::Clock;

/// Says what time it is on both clocks whenever it is asked.
const TELLER: &str = "import sys, time\nfor _ in sys.stdin: print(int(time.time()), int(time.monotonic()))";

#[test]
fn the_wall_clock_of_a_running_process_is_moved_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::new(folder.path()).unwrap();
    let mut teller = Command::new("python3")
        .args(["-uc", TELLER])
        .envs(clock.environment())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut ask, told) = (teller.stdin.take().unwrap(), teller.stdout.take().unwrap());
    let mut told = BufReader::new(told).lines();
    let mut times = Vec::new();
    for offset in [0, 100_000] {
        clock.set(offset).unwrap();
        ask.write_all(b"\n").unwrap();
        let line = told.next().unwrap().unwrap();
        let (wall, monotonic) = line.split_once(' ').unwrap();
        times.push((wall.parse::<i64>().unwrap(), monotonic.parse::<i64>().unwrap()));
    }
    drop(ask);
    assert!(teller.wait().unwrap().success());
    assert!(times[1].0 - times[0].0 >= 100_000, "{times:?}");
    assert!(times[1].1 - times[0].1 < 100_000, "{times:?}");
}
