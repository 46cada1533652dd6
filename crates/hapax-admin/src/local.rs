//! Local access: a file in the directory of the store with the URL of the admin listener and a token, by which commands on
//! the same machine find the process that owns the store.
//!
//! The token is generated at every start and valid for the listener of that process only, so a file that a killed process
//! left behind is useless, even for another sidecar at the same address. Only the user of the process can read the file;
//! that user has access to the records anyway.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::token::Token;

/// The name of the file.
const NAME: &str = "admin.json";
/// The name while the file is being written.
const NAME_NEW: &str = "admin.json.new";
/// The largest file that is read.
const BYTES_MAX: u64 = 4096;

/// The content of the file.
#[derive(Deserialize, Serialize)]
struct Written {
    url: String,
    token: String,
}

/// The file, removed on drop. Only the process that owns the store has one.
#[derive(Debug)]
pub struct LocalAccess {
    path: PathBuf,
}

impl LocalAccess {
    /// Writes the URL of the listener as seen from this machine.
    pub(crate) fn publish(directory: &Path, address: SocketAddr, token: &Token) -> io::Result<Self> {
        let url = format!("http://{}", SocketAddr::new(local_address(address.ip()), address.port()));
        let text = serde_json::to_vec(&Written { url, token: token.reveal().to_owned() })?;
        let (path, new) = (directory.join(NAME), directory.join(NAME_NEW));
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        private_file(&new)?.write_all(&text)?;
        fs::rename(&new, &path)?;
        Ok(Self { path })
    }

    /// The URL of the listener and its token, if the owner of the store in `directory` has written them.
    pub fn find(directory: &Path) -> Option<(String, Token)> {
        let path = directory.join(NAME);
        if !fs::symlink_metadata(&path).ok()?.is_file() {
            return None;
        }
        let mut text = Vec::new();
        File::open(&path).ok()?.take(BYTES_MAX).read_to_end(&mut text).ok()?;
        let written: Written = serde_json::from_slice(&text).ok()?;
        Some((written.url, Token::new(&written.token).ok()?))
    }
}

impl Drop for LocalAccess {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::debug!(%error, "cannot remove the file of the local admin access");
        }
    }
}

/// The address under which programs on the same machine reach a listener on `ip`.
fn local_address(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}

/// Creates a file that only this user can read.
fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_on_all_addresses_is_reached_by_loopback() {
        let dir = tempfile::tempdir().unwrap();
        for (address, url) in [
            ("0.0.0.0:81", "http://127.0.0.1:81"),
            ("[::]:81", "http://[::1]:81"),
            ("127.0.0.1:81", "http://127.0.0.1:81"),
            ("10.0.0.7:81", "http://10.0.0.7:81"),
        ] {
            let token = Token::random();
            let published = LocalAccess::publish(dir.path(), address.parse().unwrap(), &token).unwrap();
            let (found, given) = LocalAccess::find(dir.path()).unwrap();
            assert_eq!(found, url);
            assert!(token.is(given.reveal().as_bytes()));
            drop(published);
            assert!(LocalAccess::find(dir.path()).is_none(), "it is removed");
        }
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_the_file_and_links_are_not_followed() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = dir.path().join("elsewhere");
        fs::write(&elsewhere, "kept").unwrap();
        symlink(&elsewhere, dir.path().join(NAME)).unwrap();
        symlink(&elsewhere, dir.path().join(NAME_NEW)).unwrap();
        assert!(LocalAccess::find(dir.path()).is_none());
        let address = "127.0.0.1:81".parse().unwrap();
        let _published = LocalAccess::publish(dir.path(), address, &Token::random()).unwrap();
        let found = fs::symlink_metadata(dir.path().join(NAME)).unwrap();
        assert_eq!((found.permissions().mode() & 0o777, found.nlink()), (0o600, 1));
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "kept");
    }
}
