//! The layer on its surfaces: tonic, plain hyper, Lambda, receivers of webhooks; and the completeness of its guide.

mod grpc;
mod grpc_server;
mod guide;
mod lambda;
mod lambda_api;
mod plain_hyper;
mod webhooks;
