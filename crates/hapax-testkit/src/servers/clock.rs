//! [`ServerClock`]: a server's time of day, which a test sets.
//!
//! A small library in C is preloaded between the server and libc. It needs a C compiler and Linux.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

/// The source of the library.
const SOURCE: &str = include_str!("clock.c");

/// A clock that stands still until it is moved.
#[derive(Debug)]
pub struct ServerClock {
    library: PathBuf,
    path: PathBuf,
    file: File,
    now_us: Mutex<i64>,
}

impl ServerClock {
    /// Makes a clock in `dir` that shows the current time.
    ///
    /// # Panics
    /// When there is no C compiler: the message has the command that installs one.
    pub(super) fn new(dir: &Path) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("this is after 1970");
        let now_us = i64::try_from(now.as_micros()).expect("this is before the year 200 000");
        let path = dir.join("clock");
        fs::write(&path, now_us.to_ne_bytes()).expect("the directory takes a file");
        let file = File::options().write(true).open(&path).expect("the file was just made");
        Self { library: compile(dir), path, file, now_us: Mutex::new(now_us) }
    }

    /// Advances the clock by `span`.
    pub fn advance(&self, span: Duration) {
        let mut now_us = self.now_us.lock();
        *now_us += i64::try_from(span.as_micros()).expect("tests do not wait that long");
        self.file.write_all_at(&now_us.to_ne_bytes(), 0).expect("the file can be written");
    }

    /// Preloads the clock into `command`.
    pub(super) fn arm(&self, command: &mut Command) {
        command.env("LD_PRELOAD", &self.library).env("HAPAX_TEST_CLOCK", &self.path);
    }
}

fn compile(dir: &Path) -> PathBuf {
    let (source, library) = (dir.join("clock.c"), dir.join("clock.so"));
    fs::write(&source, SOURCE).expect("the directory takes a file");
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(&source)
        .output()
        .unwrap_or_else(|error| {
            panic!("no C compiler ({error}); install one: apt-get install -y gcc libc6-dev")
        });
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    library
}
