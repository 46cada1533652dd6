//! The bank: its messages, and its service as `tonic-prost-build` would generate it.

use hapax::http::Protection;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http, tokio_stream};
use tonic::metadata::MetadataValue;
use tonic::server::{Grpc, NamedService};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::service_fn;

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Transfer {
    #[prost(string, tag = "1")]
    pub(crate) from: String,
    #[prost(string, tag = "2")]
    pub(crate) to: String,
    #[prost(uint64, tag = "3")]
    pub(crate) amount: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Transferred {
    /// The balance of the sender.
    #[prost(uint64, tag = "1")]
    pub(crate) balance: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Account {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Entry {
    #[prost(string, tag = "1")]
    pub(crate) from: String,
    #[prost(uint64, tag = "2")]
    pub(crate) amount: u64,
}

#[derive(Clone)]
pub(crate) struct Bank(Arc<Mutex<Books>>);

struct Books {
    accounts: BTreeMap<String, u64>,
    transfers: Vec<Transfer>,
    is_closed: bool,
}

impl Bank {
    pub(crate) fn open(accounts: &[(&str, u64)]) -> Self {
        let accounts = accounts.iter().map(|(name, balance)| ((*name).to_owned(), *balance)).collect();
        Self(Arc::new(Mutex::new(Books { accounts, transfers: Vec::new(), is_closed: false })))
    }

    /// Refuses the next caller.
    pub(crate) fn close_once(&self) {
        self.books(|books| books.is_closed = true);
    }

    fn books<T>(&self, work: impl FnOnce(&mut Books) -> T) -> T {
        work(&mut self.0.lock().expect("no code panics while it holds the lock"))
    }

    fn transfer(&self, request: Request<Transfer>) -> Result<Response<Transferred>, Status> {
        // Calls to other services would carry `context.effect_key("…")`.
        let attempt =
            Protection::of(request.extensions()).and_then(Protection::context).map(hapax::Context::attempt);
        let transfer = request.into_inner();
        println!("    (server) {} for {}, attempt {attempt:?}", transfer.amount, transfer.to);
        let balance = self.books(|books| {
            if std::mem::take(&mut books.is_closed) {
                return Err(Status::unavailable("the bank is closed"));
            }
            let unknown = || Status::not_found("no such account");
            let from = books.accounts.get(&transfer.from).copied().ok_or_else(unknown)?;
            let to = books.accounts.get(&transfer.to).copied().ok_or_else(unknown)?;
            let left = from
                .checked_sub(transfer.amount)
                .ok_or_else(|| Status::failed_precondition("insufficient funds"))?;
            books.accounts.insert(transfer.from.clone(), left);
            books.accounts.insert(transfer.to.clone(), to + transfer.amount);
            books.transfers.push(transfer);
            Ok(left)
        })?;
        let mut response = Response::new(Transferred { balance });
        response.metadata_mut().insert("x-branch", MetadataValue::from_static("main"));
        Ok(response)
    }

    fn statement(&self, account: &str) -> Vec<Result<Entry, Status>> {
        self.books(|books| {
            let to = books.transfers.iter().filter(|transfer| transfer.to == account);
            to.map(|transfer| Ok(Entry { from: transfer.from.clone(), amount: transfer.amount })).collect()
        })
    }
}

impl NamedService for Bank {
    const NAME: &'static str = "bank.Bank";
}

impl Service<http::Request<Body>> for Bank {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<http::Response<Body>, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let bank = self.clone();
        Box::pin(async move {
            Ok(match request.uri().path() {
                "/bank.Bank/Transfer" => {
                    let transfer = service_fn(|request| std::future::ready(bank.transfer(request)));
                    Grpc::new(ProstCodec::<Transferred, Transfer>::default()).unary(transfer, request).await
                }
                "/bank.Bank/Statement" => {
                    let statement = service_fn(|request: Request<Account>| {
                        let entries = bank.statement(&request.get_ref().name);
                        std::future::ready(Ok::<_, Status>(Response::new(tokio_stream::iter(entries))))
                    });
                    let mut grpc = Grpc::new(ProstCodec::<Entry, Account>::default());
                    grpc.server_streaming(statement, request).await
                }
                _ => Status::unimplemented("no such method").into_http(),
            })
        })
    }
}
