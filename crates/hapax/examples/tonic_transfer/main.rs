//! A gRPC server of a bank. Its transfers are safe to retry: the key is in the metadata.
//!
//! `cargo run -p hapax --example tonic_transfer` shows everything and ends. With `-- --serve 127.0.0.1:50051` it keeps
//! serving.
#![allow(clippy::print_stdout, reason = "an example shows what happens")]

mod bank;

use std::time::Duration;

use hapax::http::{HttpPolicy, IdempotencyLayer, KeyMode};
use hapax::{Hapax, MemoryStore};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Request, Response, Status};
use tonic_prost::ProstCodec;

use bank::{Bank, Entry, Transfer, Transferred};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

async fn serve(incoming: TcpIncoming, bank: Bank) -> Result<(), BoxError> {
    let hapax = Hapax::new(MemoryStore::new());
    // A layer cannot tell a unary call from a stream, so the methods with keys are listed; the others pass unchanged.
    let idempotency = IdempotencyLayer::new(&hapax)
        .policy(HttpPolicy::off())
        .route("/bank.Bank/Transfer", HttpPolicy::grpc().key(KeyMode::Required));
    Server::builder().layer(idempotency).add_service(bank).serve_with_incoming(incoming).await?;
    Ok(())
}

/// Stands for a generated client.
struct Client(Grpc<Channel>);

impl Client {
    async fn transfer(
        &mut self,
        key: Option<&str>,
        transfer: Transfer,
    ) -> Result<Response<Transferred>, Status> {
        let mut request = Request::new(transfer);
        if let Some(key) = key {
            let key = key.parse().map_err(|_| Status::invalid_argument("not a key"))?;
            request.metadata_mut().insert("idempotency-key", key);
        }
        // The deadline differs between attempts and does not count in the fingerprint.
        request.set_timeout(Duration::from_secs(30));
        self.0.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let path = PathAndQuery::from_static("/bank.Bank/Transfer");
        self.0.unary(request, path, ProstCodec::<Transfer, Transferred>::default()).await
    }

    async fn statement(&mut self, account: &str) -> Result<Vec<Entry>, Status> {
        let request = Request::new(bank::Account { name: account.to_owned() });
        self.0.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let path = PathAndQuery::from_static("/bank.Bank/Statement");
        let codec = ProstCodec::<bank::Account, Entry>::default();
        let mut entries = self.0.server_streaming(request, path, codec).await?.into_inner();
        let mut all = Vec::new();
        while let Some(entry) = entries.message().await? {
            all.push(entry);
        }
        Ok(all)
    }
}

fn is_replay(metadata: &tonic::metadata::MetadataMap) -> bool {
    metadata.contains_key("x-idempotent-replayed")
}

/// Prints a refusal and checks that it is the expected one.
fn expect(
    refused: Result<Response<Transferred>, Status>,
    code: Code,
    replayed: bool,
) -> Result<(), BoxError> {
    let status = refused.err().ok_or("this should have been refused")?;
    println!("  {:?}, replayed: {}: {}", status.code(), is_replay(status.metadata()), status.message());
    assert_eq!((status.code(), is_replay(status.metadata())), (code, replayed));
    Ok(())
}

async fn show(client: &mut Client, bank: &Bank) -> Result<(), BoxError> {
    let transfer = |amount| Transfer { from: "ann".to_owned(), to: "ben".to_owned(), amount };

    println!("Sent twice, booked once.");
    for replayed in [false, true] {
        let answer = client.transfer(Some("rent-may"), transfer(30)).await?;
        println!("  OK, replayed: {}: {:?}", is_replay(answer.metadata()), answer.get_ref());
        assert_eq!((is_replay(answer.metadata()), answer.get_ref().balance), (replayed, 70));
        assert_eq!(answer.metadata().get("x-branch").map(|branch| branch == "main"), Some(true));
    }

    println!("The same key with another amount, and no key.");
    expect(client.transfer(Some("rent-may"), transfer(31)).await, Code::FailedPrecondition, false)?;
    expect(client.transfer(None, transfer(30)).await, Code::InvalidArgument, false)?;

    println!("Insufficient funds: the bank's own response is final, with its status.");
    expect(client.transfer(Some("yacht"), transfer(1000)).await, Code::FailedPrecondition, false)?;
    expect(client.transfer(Some("yacht"), transfer(1000)).await, Code::FailedPrecondition, true)?;

    println!("The bank is closed: not final, so the next attempt runs.");
    bank.close_once();
    expect(client.transfer(Some("rent-june"), transfer(30)).await, Code::Unavailable, false)?;
    let answer = client.transfer(Some("rent-june"), transfer(30)).await?;
    assert_eq!((is_replay(answer.metadata()), answer.get_ref().balance), (false, 40));

    println!("A stream is not listed, and passes unchanged.");
    let entries = client.statement("ben").await?;
    println!("  {entries:?}");
    assert_eq!(entries.iter().map(|entry| entry.amount).collect::<Vec<_>>(), [30, 30]);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let address = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => "127.0.0.1:0",
        ["--serve", address] => address,
        _ => return Err("the only argument is `--serve ADDRESS`".into()),
    };
    let incoming = TcpIncoming::bind(address.parse()?)?;
    let listening = format!("http://{}", incoming.local_addr()?);
    let bank = Bank::open(&[("ann", 100), ("ben", 0)]);
    let server = tokio::spawn(serve(incoming, bank.clone()));
    if arguments.is_empty() {
        let mut client = Client(Grpc::new(Endpoint::from_shared(listening)?.connect().await?));
        show(&mut client, &bank).await
    } else {
        println!("the bank is open at {listening}");
        server.await?
    }
}
