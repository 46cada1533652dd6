//! Runs another program and streams its output line by line to the terminal and to the caller.

use std::io::{self, BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// One line of a program's output.
enum Line {
    Out(String),
    Err(String),
}

impl Line {
    fn text(&self) -> &str {
        match self {
            Self::Out(text) | Self::Err(text) => text,
        }
    }
}

/// Runs `command` to its end, without standard input, and prints its output. Fails when it cannot be started, exits with
/// a nonzero code, or exceeds `limit`; then it is killed.
pub(crate) fn run(command: &mut Command, limit: Duration, mut read: impl FnMut(&str)) -> Result<()> {
    follow(command, limit, |line| {
        match &line {
            Line::Out(text) => println!("{text}"),
            Line::Err(text) => eprintln!("{text}"),
        }
        read(line.text());
    })
}

/// As [`run`], without printing the output: `read` decides what to show.
pub(crate) fn run_quiet(command: &mut Command, limit: Duration, mut read: impl FnMut(&str)) -> Result<()> {
    follow(command, limit, |line| read(line.text()))
}

fn follow(command: &mut Command, limit: Duration, mut take: impl FnMut(Line)) -> Result<()> {
    let shown = shown(command);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("failed to start `{shown}`"))?;
    let (lines, arrived) = mpsc::channel();
    forward(child.stdout.take(), lines.clone(), Line::Out);
    forward(child.stderr.take(), lines, Line::Err);

    let started = Instant::now();
    loop {
        match arrived.recv_timeout(limit.saturating_sub(started.elapsed())) {
            Ok(line) => take(line),
            Err(RecvTimeoutError::Timeout) => {
                child.kill().and_then(|()| child.wait()).context("failed to kill it")?;
                bail!("`{shown}` was still running after {} s and was killed", limit.as_secs());
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let status = child.wait().with_context(|| format!("failed to wait for `{shown}`"))?;
    ensure!(status.success(), "`{shown}` failed: {status}");
    Ok(())
}

/// Whether `command` can be started and succeeds; its output is discarded.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// The command line, for messages.
pub(crate) fn shown(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let name = program.rsplit('/').next().unwrap_or(&program).to_owned();
    command.get_args().fold(name, |line, argument| format!("{line} {}", argument.to_string_lossy()))
}

fn forward<S: Read + Send + 'static>(stream: Option<S>, lines: Sender<Line>, as_line: fn(String) -> Line) {
    let Some(stream) = stream else { return };
    thread::spawn(move || -> io::Result<()> {
        let mut reader = BufReader::new(stream);
        let mut bytes = Vec::new();
        while reader.read_until(b'\n', &mut bytes)? > 0 {
            let line = String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']).to_owned();
            if lines.send(as_line(line)).is_err() {
                break;
            }
            bytes.clear();
        }
        Ok(())
    });
}

#[cfg(test)]
mod tests;
