//! The layer where people use it: tonic, plain hyper, Lambda, receivers of webhooks; and the guide to it.

mod grpc;
mod grpc_server;
mod guide;
mod lambda;
mod lambda_api;
mod plain_hyper;
mod webhooks;
