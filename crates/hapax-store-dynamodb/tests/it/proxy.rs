//! A proxy in front of the server that counts calls and injects faults.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use hapax_store_dynamodb::{Credentials, DynamoDbStore, Options};
use hapax_testkit::servers::DynamoDbServer;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::fixture::PATIENCE;

/// The fault for one call.
#[derive(Clone, Debug)]
pub(crate) enum Fate {
    /// It reaches the server, and the reply is lost.
    LoseAnswer,
    /// It does not reach the server: this is the reply.
    Answer(u16, &'static str),
    /// It does not reach the server: the reply refuses the signature's time and carries this date.
    Disbelieve(SystemTime),
}

/// A listener on loopback in front of a server.
#[derive(Debug)]
pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    calls: Mutex<Vec<String>>,
    fates: Mutex<VecDeque<Fate>>,
}

impl Proxy {
    pub(crate) async fn start(server: &DynamoDbServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let (port, serving) = (server.port(), shared.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(client, port, serving.clone()));
            }
        });
        Self { address, shared }
    }

    /// A store in `table` through this proxy.
    pub(crate) fn options(&self, table: &str) -> Options {
        let url = format!("dynamodb://{table}?region=local&endpoint=http://{}", self.address);
        DynamoDbStore::options(&url).unwrap().credentials(Credentials::new("test", "test")).timeout(PATIENCE)
    }

    /// The faults of the next calls, in order. Further calls pass.
    pub(crate) fn next(&self, fates: impl IntoIterator<Item = Fate>) {
        self.shared.fates.lock().unwrap().extend(fates);
    }

    /// All further calls pass.
    pub(crate) fn forget(&self) {
        self.shared.fates.lock().unwrap().clear();
    }

    /// The actions called since the last time.
    pub(crate) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.calls.lock().unwrap())
    }
}

async fn serve(client: TcpStream, port: u16, shared: Arc<Shared>) -> std::io::Result<()> {
    let mut client = BufReader::new(client);
    let mut server = BufReader::new(TcpStream::connect(("127.0.0.1", port)).await?);
    while let Some(request) = message(&mut client).await? {
        let head = String::from_utf8_lossy(&request);
        let target = head.split("DynamoDB_20120810.").nth(1).and_then(|rest| rest.split("\r\n").next());
        shared.calls.lock().unwrap().push(target.unwrap_or_default().to_owned());
        let fate = shared.fates.lock().unwrap().pop_front();
        let refused = match fate {
            Some(Fate::Answer(status, body)) => Some((status, body, SystemTime::now())),
            Some(Fate::Disbelieve(date)) => {
                Some((400, r#"{"__type": "com.amazon.coral.service#InvalidSignatureException"}"#, date))
            }
            Some(Fate::LoseAnswer) | None => None,
        };
        if let Some((status, body, date)) = refused {
            let (date, length) = (httpdate::fmt_http_date(date), body.len());
            let answer =
                format!("HTTP/1.1 {status} x\r\nDate: {date}\r\nContent-Length: {length}\r\n\r\n{body}");
            client.write_all(answer.as_bytes()).await?;
            continue;
        }
        server.write_all(&request).await?;
        let Some(answer) = message(&mut server).await? else { return Ok(()) };
        if fate.is_some() {
            return Ok(());
        }
        client.write_all(&answer).await?;
    }
    Ok(())
}

/// One request or reply with its body; none at the end of the connection.
async fn message(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<Vec<u8>>> {
    let mut message = Vec::new();
    let mut length = 0;
    loop {
        let begin = message.len();
        if stream.read_until(b'\n', &mut message).await? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&message[begin..]).to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let begin = message.len();
    message.resize(begin + length, 0);
    stream.read_exact(&mut message[begin..]).await?;
    Ok(Some(message))
}
