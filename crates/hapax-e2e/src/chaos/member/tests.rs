use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use super::Clock;

/// Prints the time of both clocks for each line of input.
const CLOCK_READER: &str =
    "import sys, time\nfor _ in sys.stdin: print(int(time.time()), int(time.monotonic()))";

#[test]
fn only_the_wall_clock_of_a_running_process_is_moved() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::new(folder.path()).unwrap();
    let mut reader = Command::new("python3")
        .args(["-uc", CLOCK_READER])
        .envs(clock.environment())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, output) = (reader.stdin.take().unwrap(), reader.stdout.take().unwrap());
    let mut lines = BufReader::new(output).lines();
    let mut times = Vec::new();
    for offset in [0, 100_000] {
        clock.set(offset).unwrap();
        input.write_all(b"\n").unwrap();
        let line = lines.next().unwrap().unwrap();
        let (wall, monotonic) = line.split_once(' ').unwrap();
        times.push((wall.parse::<i64>().unwrap(), monotonic.parse::<i64>().unwrap()));
    }
    drop(input);
    assert!(reader.wait().unwrap().success());
    assert!(times[1].0 - times[0].0 >= 100_000, "{times:?}");
    assert!(times[1].1 - times[0].1 < 100_000, "{times:?}");
}
