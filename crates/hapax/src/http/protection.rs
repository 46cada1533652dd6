//! [`Protection`]: how a request that reaches a service is protected.

use hapax_core::RecordId;
use http::Extensions;

use crate::engine::Context;

/// In the extensions of a request that a layer passes to the service: how it is protected. Requests without a key have
/// none.
///
/// ```
/// use hapax::http::Protection;
///
/// fn attempt<B>(request: &http::Request<B>) -> Option<u32> {
///     Some(Protection::of(request.extensions())?.context()?.attempt())
/// }
/// # assert_eq!(attempt(&http::Request::new(())), None);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Protection {
    /// Its key is claimed by this attempt.
    Claimed(Context),
    /// The store failed, and the route lets requests pass: the request runs without a claim. This is the record that it
    /// would have had.
    Unprotected(RecordId),
}

impl Protection {
    /// The protection of the request with these extensions.
    pub fn of(extensions: &Extensions) -> Option<&Self> {
        extensions.get()
    }

    /// The attempt that has claimed the key.
    pub fn context(&self) -> Option<&Context> {
        match self {
            Self::Claimed(context) => Some(context),
            Self::Unprotected(_) => None,
        }
    }

    /// The record of the request.
    pub fn id(&self) -> RecordId {
        match self {
            Self::Claimed(context) => context.id(),
            Self::Unprotected(id) => *id,
        }
    }
}
