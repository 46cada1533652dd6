//! TLS of a running sidecar: certificates are reloaded without a restart.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};

use crate::fixture::Fixture;
use crate::sidecar::{Origin, Sidecar, reply};

fn pem(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../hapax-proxy/tests/it/pem").join(name)
}

fn certificate(name: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(pem(name)).unwrap()
}

/// A keep-alive connection.
struct Encrypted(BufReader<StreamOwned<ClientConnection, TcpStream>>);

impl Encrypted {
    fn to(address: SocketAddr) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(certificate("ca.pem")).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let stream = TcpStream::connect(address).unwrap();
        Self(BufReader::new(StreamOwned::new(connection, stream)))
    }

    /// Sends a request and returns the certificate of the connection.
    fn ask(&mut self) -> CertificateDer<'static> {
        self.0.get_mut().write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        let mut first = String::new();
        self.0.read_line(&mut first).unwrap();
        assert!(first.starts_with("HTTP/1.1 200 "), "{first}");
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            self.0.read_line(&mut line).unwrap();
        }
        self.0.read_exact(&mut [0; 2]).unwrap();
        self.0.get_ref().conn.peer_certificates().unwrap()[0].clone()
    }
}

#[test]
fn a_certificate_is_reloaded_without_closing_a_connection() {
    let origin = Origin::start(|_, _| reply(200, "ok"));
    let fixture = Fixture::bare();
    let (served, key) = (fixture.path().join("served.pem"), fixture.path().join("served.key"));
    let put = |name: &str| {
        std::fs::copy(pem(&format!("{name}.pem")), &served).unwrap();
        std::fs::copy(pem(&format!("{name}.key")), &key).unwrap();
    };
    put("first");
    let file = format!("[tls]\ncertificate = {served:?}\nkey = {key:?}\n");
    std::fs::write(fixture.path().join("hapax.toml"), file).unwrap();
    let mut sidecar = Sidecar::start(&fixture, &["--upstream", &origin.url()]);
    let [first, second] = ["first.pem", "second.pem"].map(certificate);
    let mut open = Encrypted::to(sidecar.address());
    assert_eq!(open.ask(), first);

    put("second");
    sidecar.signal("HUP");
    sidecar.logged("certificate reloaded");
    assert_eq!(open.ask(), first, "open connections keep their certificate");
    assert_eq!(Encrypted::to(sidecar.address()).ask(), second);

    std::fs::write(&served, "no certificate").unwrap();
    sidecar.signal("HUP");
    sidecar.logged("the certificate cannot be reloaded");
    assert_eq!(open.ask(), first);
    assert_eq!(Encrypted::to(sidecar.address()).ask(), second);
}
