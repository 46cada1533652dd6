//! [`Operation`]: what is to be executed once.

use std::future::Future;
use std::sync::Arc;
use std::time::SystemTime;

use hapax_core::{Fingerprint, Key, RecordId, Recorded, Scope, ScopedKey};

use super::{Question, Reconcile, Reconciled};
use crate::policy::Policy;

/// One operation to be executed once: its key, what a repetition has to equal, and its rules.
#[derive(Clone)]
#[must_use]
pub struct Operation {
    pub(crate) key: ScopedKey,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) policy: Policy,
    pub(crate) reconcile: Option<Reconcile>,
    /// From when on the record of this key may have expired, where such keys are to be refused.
    pub(crate) expires_at: Option<SystemTime>,
    pub(crate) label: Option<Arc<str>>,
    /// The store has reported a record of the key. Should it fail now, the operation must not run without a claim.
    pub(crate) is_known: bool,
}

impl Operation {
    /// The operation that `key` names within `scope`.
    pub fn new(scope: Scope, key: &Key, policy: Policy) -> Self {
        Self {
            expires_at: policy.forgets_at(key),
            key: ScopedKey::new(scope, key),
            fingerprint: Fingerprint::empty(),
            policy,
            reconcile: None,
            label: None,
            is_known: false,
        }
    }

    /// What a repetition has to equal: the same key with another fingerprint is refused as a
    /// [mismatch](super::Refusal::Mismatch).
    pub fn fingerprint(mut self, fingerprint: Fingerprint) -> Self {
        self.fingerprint = fingerprint;
        self
    }

    /// Asks `reconcile` whether the operation happened, when its record is uncertain.
    pub fn reconcile<A, F>(mut self, reconcile: A) -> Self
    where
        A: Fn(Question) -> F + Send + Sync + 'static,
        F: Future<Output = Reconciled<Recorded>> + Send + 'static,
    {
        self.reconcile = Some(Arc::new(move |question| Box::pin(reconcile(question))));
        self
    }

    /// A name for log lines about the operation, such as its route.
    pub fn label(mut self, label: impl Into<Arc<str>>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// The id of its record.
    pub fn id(&self) -> RecordId {
        self.key.id
    }

    pub(super) fn is_expired(&self) -> bool {
        self.expires_at.is_some_and(|expires_at| SystemTime::now() > expires_at)
    }
}

impl std::fmt::Debug for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Operation")
            .field("id", &self.key.id)
            .field("policy", &self.policy)
            .field("label", &self.label)
            .finish_non_exhaustive()
    }
}
