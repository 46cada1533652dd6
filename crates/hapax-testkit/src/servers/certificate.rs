//! Certificates for servers that speak TLS.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes a self-signed certificate for localhost in `dir`, and its key: two PEM files.
///
/// # Panics
/// When it cannot be made. If openssl is not installed, the message has the command that installs it.
pub fn certificate(dir: &Path, name: &str) -> (PathBuf, PathBuf) {
    let (certificate, key) = (dir.join(format!("{name}.pem")), dir.join(format!("{name}.key")));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
        .args(["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .unwrap_or_else(|error| panic!("no openssl ({error}); install it: apt-get install -y openssl"));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    (certificate, key)
}
