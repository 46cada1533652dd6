//! The codes, in one table: status, gRPC status, advice for retries, and texts.

use std::fmt;

use http::StatusCode;

use crate::http::classify::Outcome;
use crate::http::grpc::GrpcStatus;

/// Why a request was refused, by the name of its page in `docs/errors`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Code {
    /// The route requires a key, and the request has none.
    KeyMissing,
    /// The key is not valid.
    KeyInvalid,
    /// The key was made longer ago than records are kept.
    KeyExpired,
    /// The key was used for another request.
    KeyReused,
    /// The first request with this key is still running.
    InProgress,
    /// It is unknown whether the operation happened.
    Uncertain,
    /// The operation happened, and its response is not available.
    ResultUnavailable,
    /// The request's body is larger than the route allows.
    TooLarge,
    /// This key or this caller exceeded a limit.
    RateLimited,
    /// The store could not take the claim.
    StoreUnavailable,
    /// The origin could not be reached, and nothing was sent to it.
    UpstreamUnavailable,
    /// The process is shutting down.
    Draining,
    /// The process has no room for more request bodies.
    Overloaded,
    /// The route requires a principal, and the request has none.
    PrincipalMissing,
    /// The request may be a replay of TLS early data.
    TooEarly,
    /// The body does not match its digest.
    DigestMismatch,
    /// The body ended before it was complete.
    BodyIncomplete,
    /// The body has a content coding that cannot be decoded.
    CodingUnsupported,
    /// The signature of a webhook does not match.
    SignatureInvalid,
    /// The operation cannot be made repeatable.
    NotRepeatable,
}

/// What a caller may do after a refusal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Advice {
    /// Send the same request again, with the same key, after a while.
    Later,
    /// An immediate retry fails again. Once the cause is removed, retry with the same key.
    SameKey,
    /// Nothing was or will be executed under the key that the request carried: it needs another one.
    NewKey,
    /// No retry helps, and another key might repeat the operation.
    Stop,
}

struct CodeRow {
    code: Code,
    name: &'static str,
    status: StatusCode,
    grpc: GrpcStatus,
    advice: Advice,
    title: &'static str,
    detail: &'static str,
}

/// In the order of [`Code`], so that a code's number is the index of its row.
static ROWS: [CodeRow; 20] = [
    CodeRow {
        code: Code::KeyMissing,
        name: "key-missing",
        status: StatusCode::BAD_REQUEST,
        grpc: GrpcStatus::InvalidArgument,
        advice: Advice::NewKey,
        title: "The request has no idempotency key",
        detail: "This operation is only run with an idempotency key. Send one, and keep it for every retry.",
    },
    CodeRow {
        code: Code::KeyInvalid,
        name: "key-invalid",
        status: StatusCode::BAD_REQUEST,
        grpc: GrpcStatus::InvalidArgument,
        advice: Advice::NewKey,
        title: "The idempotency key is not valid",
        detail: "The key that was sent is not valid. Nothing was executed.",
    },
    CodeRow {
        code: Code::KeyExpired,
        name: "key-expired",
        status: StatusCode::BAD_REQUEST,
        grpc: GrpcStatus::FailedPrecondition,
        advice: Advice::Stop,
        title: "The idempotency key is too old",
        detail: "The key is older than records are kept. Find out whether the operation happened before using a new key.",
    },
    CodeRow {
        code: Code::KeyReused,
        name: "key-reused",
        status: StatusCode::UNPROCESSABLE_ENTITY,
        grpc: GrpcStatus::FailedPrecondition,
        // It may be a rebuilt retry of an operation that happened under this key.
        advice: Advice::Stop,
        title: "The idempotency key was used for another request",
        detail: "Another request was sent with this key before. This one was not executed.",
    },
    CodeRow {
        code: Code::InProgress,
        name: "in-progress",
        status: StatusCode::CONFLICT,
        grpc: GrpcStatus::Aborted,
        advice: Advice::Later,
        title: "The operation is in progress",
        detail: "An earlier request with this key is still running. Send it again with the same key for its response.",
    },
    CodeRow {
        code: Code::Uncertain,
        name: "uncertain",
        status: StatusCode::CONFLICT,
        grpc: GrpcStatus::Aborted,
        advice: Advice::SameKey,
        title: "It is unknown whether the operation happened",
        detail: "An earlier request with this key ended without a known result. The operation is not run again until its record is settled.",
    },
    CodeRow {
        code: Code::ResultUnavailable,
        name: "result-unavailable",
        status: StatusCode::CONFLICT,
        grpc: GrpcStatus::FailedPrecondition,
        advice: Advice::Stop,
        title: "The operation happened, its response is not available",
        detail: "The operation was run with this key before, and its response was not recorded. It is not run again.",
    },
    CodeRow {
        code: Code::TooLarge,
        name: "too-large",
        status: StatusCode::PAYLOAD_TOO_LARGE,
        grpc: GrpcStatus::ResourceExhausted,
        advice: Advice::SameKey,
        title: "The request is too large",
        detail: "The body is larger than this operation accepts. Nothing was executed.",
    },
    CodeRow {
        code: Code::RateLimited,
        name: "rate-limited",
        status: StatusCode::TOO_MANY_REQUESTS,
        grpc: GrpcStatus::ResourceExhausted,
        advice: Advice::Later,
        title: "Too many requests",
        detail: "This key or this caller exceeded a limit. Nothing was executed.",
    },
    CodeRow {
        code: Code::StoreUnavailable,
        name: "store-unavailable",
        status: StatusCode::SERVICE_UNAVAILABLE,
        grpc: GrpcStatus::Unavailable,
        advice: Advice::Later,
        title: "The store of idempotency records is unavailable",
        detail: "The request could not be claimed, so nothing was executed.",
    },
    CodeRow {
        code: Code::UpstreamUnavailable,
        name: "upstream-unavailable",
        status: StatusCode::BAD_GATEWAY,
        grpc: GrpcStatus::Unavailable,
        advice: Advice::Later,
        title: "The origin is unavailable",
        detail: "The origin could not be reached. Nothing was sent to it.",
    },
    CodeRow {
        code: Code::Draining,
        name: "draining",
        status: StatusCode::SERVICE_UNAVAILABLE,
        grpc: GrpcStatus::Unavailable,
        advice: Advice::Later,
        title: "The service is shutting down",
        detail: "This process accepts no new operations. Nothing was executed.",
    },
    CodeRow {
        code: Code::Overloaded,
        name: "overloaded",
        status: StatusCode::SERVICE_UNAVAILABLE,
        grpc: GrpcStatus::Unavailable,
        advice: Advice::Later,
        title: "The service is overloaded",
        detail: "This process has no room for more request bodies. Nothing was executed.",
    },
    CodeRow {
        code: Code::PrincipalMissing,
        name: "principal-missing",
        status: StatusCode::BAD_REQUEST,
        grpc: GrpcStatus::Unauthenticated,
        advice: Advice::SameKey,
        title: "The request does not identify its caller",
        detail: "This operation is only run for identified callers. Nothing was executed.",
    },
    CodeRow {
        code: Code::TooEarly,
        name: "too-early",
        status: StatusCode::TOO_EARLY,
        grpc: GrpcStatus::Unavailable,
        advice: Advice::Later,
        title: "The request came too early",
        detail: "The request was sent before the connection was safe from replays. Send it again. Nothing was executed.",
    },
    CodeRow {
        code: Code::DigestMismatch,
        name: "digest-mismatch",
        status: StatusCode::BAD_REQUEST,
        grpc: GrpcStatus::InvalidArgument,
        advice: Advice::SameKey,
        title: "The body does not match its digest",
        detail: "The body does not match the digest field. Nothing was executed.",
    },
    CodeRow {
        code: Code::BodyIncomplete,
        name: "body-incomplete",
        status: StatusCode::BAD_REQUEST,
        grpc: GrpcStatus::InvalidArgument,
        advice: Advice::Later,
        title: "The body is incomplete",
        detail: "The body ended before it was complete. Nothing was executed.",
    },
    CodeRow {
        code: Code::CodingUnsupported,
        name: "coding-unsupported",
        status: StatusCode::UNSUPPORTED_MEDIA_TYPE,
        grpc: GrpcStatus::Unimplemented,
        advice: Advice::SameKey,
        title: "The content coding is not supported",
        detail: "The body is encoded in a way that cannot be decoded here. Nothing was executed.",
    },
    CodeRow {
        code: Code::SignatureInvalid,
        name: "signature-invalid",
        status: StatusCode::UNAUTHORIZED,
        grpc: GrpcStatus::Unauthenticated,
        advice: Advice::SameKey,
        title: "The signature is not valid",
        detail: "The signature is missing, too old or not valid for the body. Nothing was executed.",
    },
    CodeRow {
        code: Code::NotRepeatable,
        name: "not-repeatable",
        status: StatusCode::NOT_IMPLEMENTED,
        grpc: GrpcStatus::Unimplemented,
        advice: Advice::Stop,
        title: "The operation is not repeatable",
        detail: "This operation does not accept repeatable requests. Nothing was executed.",
    },
];

impl Code {
    /// Every code.
    pub const ALL: [Self; ROWS.len()] = {
        let mut codes = [Self::KeyMissing; ROWS.len()];
        let mut row = 0;
        while row < ROWS.len() {
            codes[row] = ROWS[row].code;
            row += 1;
        }
        codes
    };

    /// The name on the wire: the end of the problem's `type`, and the name of its page.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The code with this [`name`](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.name() == name)
    }

    /// The HTTP status, unless a route or a dialect says otherwise.
    pub fn status(self) -> StatusCode {
        self.row().status
    }

    /// Its title, for people.
    pub fn title(self) -> &'static str {
        self.row().title
    }

    /// The number of the gRPC status.
    pub fn grpc(self) -> i32 {
        self.row().grpc.number()
    }

    /// The name of the gRPC status.
    pub(super) fn grpc_name(self) -> &'static str {
        self.row().grpc.name()
    }

    /// Whether the same request may succeed when it is sent again after a while.
    pub fn retryable(self) -> bool {
        self.row().advice == Advice::Later
    }

    /// Whether a later attempt at this operation should carry the same key.
    pub fn retry_with_same_key(self) -> bool {
        matches!(self.row().advice, Advice::Later | Advice::SameKey)
    }

    /// Whether it is certain that the operation neither was nor will be executed under the key that the request
    /// carried, so that another key cannot repeat it.
    pub fn safe_new_key(self) -> bool {
        self.row().advice == Advice::NewKey
    }

    /// The outcome of the refusal for a claim of the same request by an outer layer. `status` is the one of a refusal
    /// whose own run was cut off.
    pub(in crate::http) fn outcome(self, status: Option<StatusCode>) -> Outcome {
        match self {
            // It happened, and must not happen again once the inner record is removed.
            Self::ResultUnavailable => Outcome::Pin,
            Self::Uncertain => Outcome::Uncertain,
            // The request's own run continues in the background, or has lost its claim to another one.
            Self::InProgress
                if matches!(status, Some(StatusCode::GATEWAY_TIMEOUT | StatusCode::BAD_GATEWAY)) =>
            {
                Outcome::Uncertain
            }
            _ => Outcome::Release,
        }
    }

    /// The default text.
    pub(super) fn detail(self) -> &'static str {
        self.row().detail
    }

    fn row(self) -> &'static CodeRow {
        &ROWS[self as usize]
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
