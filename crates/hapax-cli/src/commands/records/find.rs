//! Finds the record that was named by its id, a prefix of its id, or its key.

use hapax_admin::records::name::{id_prefix, parse_digits, parse_key};
use hapax_admin::records::{missing, unreadable};
use hapax_admin::view::{Document, Payload, RecordView, hex, or_dash};
use hapax_core::{Query, RecordId, Scope, ScopedKey};

use super::source::{Source, id_of};
use crate::args::Name;
use crate::failure::{Code, Failure};

/// Fewer digits of an id could easily match an unrelated record.
const ID_DIGITS_MIN: usize = 8;
/// How many matches are printed if there are several.
const CANDIDATES_MAX: usize = 20;

/// Finds the record. It is an error if none or several match.
pub(super) async fn find(source: &Source, name: &Name, payload: Payload) -> Result<Document, Failure> {
    let id = match selector(name)? {
        Selector::Id(id) => id,
        Selector::Start { digits, scope } => search(source, digits, &scope).await?,
    };
    source.show(&id, payload).await
}

#[derive(Debug)]
enum Selector {
    Id(RecordId),
    Start { digits: String, scope: PartialScope },
}

/// The known parts of a scope.
#[derive(Debug, Default)]
struct PartialScope {
    namespace: Option<String>,
    principal: Option<String>,
}

impl PartialScope {
    fn admits(&self, record: &RecordView) -> bool {
        let principal = self.principal.as_ref().map(|principal| principal_digits(principal));
        self.namespace.as_ref().is_none_or(|scope| *scope == record.scope.namespace)
            && principal.is_none_or(|scope| scope == record.scope.principal)
    }
}

fn principal_digits(principal: &str) -> Option<String> {
    Scope::new("").principal(principal).principal_hash().map(|hash| hex(hash.as_bytes()))
}

fn selector(name: &Name) -> Result<Selector, Failure> {
    let Some(typed) = &name.key else {
        return selector_of_id(name.id.as_deref().unwrap_or_default());
    };
    let key = parse_key(typed)?;
    let Some(operation) = &name.operation else {
        let scope = PartialScope { namespace: name.namespace.clone(), principal: name.principal.clone() };
        return Ok(Selector::Start { digits: id_prefix(&key), scope });
    };
    let mut scope =
        Scope::new(operation.as_str()).in_namespace(name.namespace.as_deref().unwrap_or_default());
    if let Some(principal) = &name.principal {
        scope = scope.principal(principal);
    }
    Ok(Selector::Id(ScopedKey::new(scope, &key).id))
}

fn selector_of_id(typed: &str) -> Result<Selector, Failure> {
    let digits = parse_digits(typed)?;
    if let Some(id) = RecordId::parse(&digits) {
        return Ok(Selector::Id(id));
    }
    if digits.len() < ID_DIGITS_MIN {
        return Err(Failure::new(Code::InputInvalid, "this is too little of a record's id")
            .hint(format!("give at least {ID_DIGITS_MIN} of its first digits")));
    }
    Ok(Selector::Start { digits, scope: PartialScope::default() })
}

async fn search(source: &Source, digits: String, scope: &PartialScope) -> Result<RecordId, Failure> {
    let mut query = Query { id_prefix: Some(digits), ..Query::default() };
    let mut matches = Vec::new();
    loop {
        let page = source.page(&query).await?;
        if let Some(id) = page.unreadable.first() {
            return Err(unreadable(id));
        }
        matches.extend(page.records.into_iter().filter(|record| scope.admits(record)));
        if page.next.is_none() || matches.len() > CANDIDATES_MAX {
            break;
        }
        query.cursor = page.next;
    }
    match &matches[..] {
        [] => Err(missing(source.place())),
        [record] => id_of(record),
        several => Err(ambiguous(several)),
    }
}

fn ambiguous(matches: &[RecordView]) -> Failure {
    let mut lines = vec![if matches.len() > CANDIDATES_MAX {
        format!("more than {CANDIDATES_MAX} records match")
    } else {
        format!("{} records match", matches.len())
    }];
    lines.extend(matches.iter().take(CANDIDATES_MAX).map(|record| {
        format!(
            "    {}  {}  namespace {}  operation {}",
            record.id,
            record.state_words(),
            or_dash(&record.scope.namespace),
            or_dash(&record.scope.operation)
        )
    }));
    Failure::new(Code::RecordAmbiguous, lines.join("\n"))
        .hint("give more digits of the id, or --operation, --namespace and --principal with --key")
}
