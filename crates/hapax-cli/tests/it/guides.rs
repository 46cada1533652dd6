//! Runs the guide pages about frameworks behind the sidecar.
//!
//! A code block whose first line is a comment with a file name is written to that file. Shell blocks are run in one shell,
//! in order. A text block after one is its expected output: these lines, in this order, possibly with others in between;
//! `…` matches any text. `& # port N` starts an HTTP server, which is waited for. Ports are replaced by free ones.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::binary::{end_group, forget_variables, started};
use crate::tools::{self, needs};

/// All ports in the pages.
const PORTS: [&str; 4] = ["3000", "8080", "8081", "4000"];
/// The files of an installation, which are kept for the next run.
const INSTALLED: [&str; 4] = ["node_modules", "package.json", "package-lock.json", ".venv"];
/// A server that does not respond after this time, even on a busy machine, has failed to start.
const START_LIMIT: Duration = Duration::from_secs(120);
/// Printed by the shell after each block.
const END: &str = "-- end of block --";

#[test]
fn express_in_five_minutes() {
    needs("npm", "nodejs npm");
    follow("express");
}

#[test]
fn fastapi_in_five_minutes() {
    needs("python3", "python3 python3-venv");
    follow("fastapi");
}

/// Follows a page from its start to its end.
fn follow(name: &str) {
    needs("curl", "curl");
    let text = fs::read_to_string(root().join(format!("docs/guide/{name}.md"))).unwrap();
    let text = on_free_ports(text);
    let folder = workplace(name);
    let mut shell = Shell::start(&folder);
    let mut printed = Vec::new();
    let (mut replays, mut runs) = (0, 0);
    for block in blocks(&text) {
        match block.language {
            "sh" => {
                printed = shell.run(block.code);
                runs += 1;
                replays +=
                    printed.iter().filter(|line| line.as_str() == "x-idempotent-replayed: true").count();
            }
            "text" => promised(block.code, &printed),
            _ => fs::write(folder.join(block.file_name()), block.code).unwrap(),
        }
    }
    assert!(runs > 10, "{name}: the page has only {runs} shell blocks");
    assert_eq!(replays, 1, "{name}: the sidecar replays one response");
    let orders = fs::read_to_string(folder.join("orders.log")).unwrap();
    assert_eq!(orders, "book\ndynamite\n", "{name}: each order is created once");
}

pub(crate) struct Block<'a> {
    pub(crate) language: &'a str,
    pub(crate) code: &'a str,
}

impl Block<'_> {
    /// The file name in the first line of the block.
    fn file_name(&self) -> &str {
        let first = self.code.lines().next().unwrap();
        let name = first.strip_prefix("// ").or_else(|| first.strip_prefix("# "));
        name.unwrap_or_else(|| {
            panic!("a block of {} begins with {first:?}, not with its name", self.language)
        })
    }
}

pub(crate) fn blocks(page: &str) -> impl Iterator<Item = Block<'_>> {
    page.split("\n```").skip(1).step_by(2).map(|block| {
        let (language, code) = block.split_once('\n').expect("a block has lines");
        Block { language, code }
    })
}

/// Every line of `promise` is in the output, in this order.
#[track_caller]
fn promised(promise: &str, printed: &[String]) {
    let mut rest = printed.iter();
    for line in promise.lines() {
        assert!(
            rest.any(|found| matches(line, found)),
            "{line:?} is missing or out of order in {printed:#?}"
        );
    }
}

pub(crate) fn matches(pattern: &str, line: &str) -> bool {
    match pattern.split_once('…') {
        None => pattern == line,
        Some((start, end)) => line.strip_prefix(start).is_some_and(|rest| rest.ends_with(end)),
    }
}

#[test]
fn expected_lines_must_be_in_the_output_in_the_same_order() {
    let printed = ["HTTP/1.1 201 Created", "date: today", "{\"item\":1}"].map(str::to_owned);
    for kept in ["", "date: today", "HTTP/1.1 …\n{…}", "… Created\n{\"item\":…}"] {
        promised(kept, &printed);
    }
    for broken in ["HTTP/1.1 200 OK", "date", "{…}\ndate: today", "date: today\ndate: today", "dat…\n[…"]
    {
        let result = std::panic::catch_unwind(|| promised(broken, &printed));
        assert!(result.is_err(), "{broken:?}");
    }
}

/// A shell that runs the blocks in order. Dropping it ends its process group.
struct Shell {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Shell {
    fn start(folder: &Path) -> Self {
        let hapax = Path::new(env!("CARGO_BIN_EXE_hapax")).parent().unwrap();
        let path = format!("{}:{}", hapax.display(), std::env::var("PATH").unwrap());
        let mut bash = Command::new("bash");
        forget_variables(&mut bash);
        // Background processes of blocks are in the process group of the shell.
        bash.arg("-e").current_dir(folder).env("PATH", path).process_group(0);
        let mut child = started(bash.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let (stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, stdin, stdout }
    }

    /// The output of the block. The servers that it starts respond by then.
    fn run(&mut self, block: &str) -> Vec<String> {
        // The shell reads its commands from stdin, which the commands of a block must not read.
        writeln!(self.stdin, "{{\n{block}\n}} </dev/null\nprintf '\\n{END}\\n'").unwrap();
        let mut printed = Vec::new();
        loop {
            let mut line = String::new();
            let read = self.stdout.read_line(&mut line).unwrap();
            assert!(read > 0, "a command of this block failed:\n{block}\nIt printed {printed:#?}");
            match line.trim_end() {
                END => break,
                line => printed.push(line.to_owned()),
            }
        }
        for line in block.lines() {
            if let Some((_, port)) = line.split_once("& # port ") {
                wait_for(port);
            }
        }
        printed
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        end_group(&mut self.child);
    }
}

/// Waits for an HTTP response on the port.
fn wait_for(port: &str) {
    let started_at = Instant::now();
    while answer(port).is_none() {
        assert!(started_at.elapsed() < START_LIMIT, "no response on port {port}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn answer(port: &str) -> Option<()> {
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).ok()?;
    stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").ok()?;
    stream.read_exact(&mut [0; 5]).ok()
}

/// Replaces the ports of the page with free ones, which are held until all are chosen.
fn on_free_ports(page: String) -> String {
    let held = PORTS.map(|written| (written, TcpListener::bind("127.0.0.1:0").unwrap()));
    // In two steps, because one port may contain the digits of another.
    let marked = PORTS.iter().fold(page, |page, written| page.replace(written, &format!("<{written}>")));
    held.iter().fold(marked, |page, (written, held)| {
        let free = held.local_addr().unwrap().port().to_string();
        page.replace(&format!("<{written}>"), &free)
    })
}

/// An empty folder for a page in the target directory, except for an earlier installation.
fn workplace(name: &str) -> PathBuf {
    let folder = tools::folder(&format!("guide-{name}"));
    for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
        let left = entry.path();
        match entry.file_name().to_str() {
            Some(known) if INSTALLED.contains(&known) => {}
            _ if left.is_dir() => fs::remove_dir_all(left).unwrap(),
            _ => fs::remove_file(left).unwrap(),
        }
    }
    folder
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
