//! Finding the one record that was named: by its id, the start of it, or its key.

use hapax_core::key::key_hash;
use hapax_core::{Key, Lookup, Query, Record, RecordId, Scope, ScopedKey, Store};

use super::{Context, Found};
use crate::args::Name;
use crate::failure::{Code, Failure};
use crate::view::{hex, or_dash, state_words};

/// Digits of an id.
const ID_DIGITS: usize = 64;
/// Fewer digits of an id would too easily name a record that was not meant.
const ID_DIGITS_MIN: usize = 8;
/// How many records are named when several match.
const CANDIDATES_MAX: usize = 20;

/// Finds the record; none and several are failures.
pub(super) async fn find(store: &dyn Store, name: &Name, context: &Context) -> Result<Found, Failure> {
    match wanted(name)? {
        Wanted::Id(id) => get(store, &id, context).await,
        Wanted::Start { digits, scope } => search(store, digits, &scope, context).await,
    }
}

/// The key as it was typed: in double quotes as in a header, or bare.
pub(super) fn parse_key(typed: &str) -> Result<Key, Failure> {
    let key = if typed.starts_with('"') { Key::parse(typed.as_bytes()) } else { Key::new(typed) };
    key.map_err(|error| {
        Failure::new(Code::KeyInvalid, "what --key names is not a key")
            .because(error)
            .hint("a key is 1 to 255 printable ASCII characters, bare or in double quotes")
    })
}

/// The start of every id that `key` has, in any scope.
pub(super) fn id_prefix(key: &Key) -> String {
    hex(&key_hash(key))
}

/// `typed` as the start of an id.
pub(super) fn parse_digits(typed: &str) -> Result<String, Failure> {
    let is_hex = !typed.is_empty() && typed.chars().all(|c| c.is_ascii_hexdigit());
    if is_hex && typed.len() <= ID_DIGITS {
        return Ok(typed.to_ascii_lowercase());
    }
    Err(Failure::new(Code::InputInvalid, "this is not a record's id")
        .hint("an id has 64 hexadecimal digits; name a record by its key with --key"))
}

#[derive(Debug)]
enum Wanted {
    Id(RecordId),
    Start { digits: String, scope: PartOfScope },
}

/// As much of a scope as is known.
#[derive(Debug, Default)]
struct PartOfScope {
    namespace: Option<String>,
    principal: Option<String>,
}

impl PartOfScope {
    fn admits(&self, record: &Record) -> bool {
        let scope = &record.key.scope;
        let principal = self.principal.as_ref().map(|principal| Scope::new("").principal(principal));
        self.namespace.as_deref().is_none_or(|wanted| wanted == scope.namespace())
            && principal.is_none_or(|wanted| wanted.principal_hash() == scope.principal_hash())
    }
}

fn wanted(name: &Name) -> Result<Wanted, Failure> {
    let Some(typed) = &name.key else {
        return wanted_by_id(name.id.as_deref().unwrap_or_default());
    };
    let key = parse_key(typed)?;
    let Some(operation) = &name.operation else {
        let scope = PartOfScope { namespace: name.namespace.clone(), principal: name.principal.clone() };
        return Ok(Wanted::Start { digits: id_prefix(&key), scope });
    };
    let mut scope =
        Scope::new(operation.as_str()).in_namespace(name.namespace.as_deref().unwrap_or_default());
    if let Some(principal) = &name.principal {
        scope = scope.principal(principal);
    }
    Ok(Wanted::Id(ScopedKey::new(scope, &key).id))
}

fn wanted_by_id(typed: &str) -> Result<Wanted, Failure> {
    let digits = parse_digits(typed)?;
    if let Some(id) = RecordId::parse(&digits) {
        return Ok(Wanted::Id(id));
    }
    if digits.len() < ID_DIGITS_MIN {
        return Err(Failure::new(Code::InputInvalid, "this is too little of a record's id")
            .hint(format!("give at least {ID_DIGITS_MIN} of its first digits")));
    }
    Ok(Wanted::Start { digits, scope: PartOfScope::default() })
}

async fn get(store: &dyn Store, id: &RecordId, context: &Context) -> Result<Found, Failure> {
    let looked_up = store
        .get(id)
        .await
        .map_err(|error| Failure::store(error, format!("cannot read {}", context.store)))?;
    match looked_up {
        Lookup::Found { record, now } => Ok(Found { record, now }),
        Lookup::Absent => Err(missing(context)),
        Lookup::Unreadable { why } => Err(unreadable(id).because(why)),
    }
}

async fn search(
    store: &dyn Store,
    digits: String,
    scope: &PartOfScope,
    context: &Context,
) -> Result<Found, Failure> {
    let mut query = Query { id_prefix: Some(digits), ..Query::default() };
    let mut matches = Vec::new();
    loop {
        let page = store
            .list(&query)
            .await
            .map_err(|error| Failure::store(error, format!("cannot read {}", context.store)))?;
        if let Some(id) = page.unreadable.first() {
            return Err(unreadable(id));
        }
        let now = page.now;
        let admitted = page.records.into_iter().filter(|record| scope.admits(record));
        matches.extend(admitted.map(|record| Found { record: Box::new(record), now }));
        if page.next.is_none() || matches.len() > CANDIDATES_MAX {
            break;
        }
        query.cursor = page.next;
    }
    match matches.pop() {
        None => Err(missing(context)),
        Some(found) if matches.is_empty() => Ok(found),
        Some(last) => {
            matches.push(last);
            Err(ambiguous(&matches))
        }
    }
}

fn missing(context: &Context) -> Failure {
    Failure::new(Code::RecordMissing, format!("{} has no such record", context.store)).hint(
        "a record is removed when its retention is over; \
         check the scope and the store, or look with `hapax records list`",
    )
}

fn unreadable(id: &RecordId) -> Failure {
    Failure::new(Code::RecordUnreadable, format!("the record {id} is there and cannot be read"))
        .hint("its key is answered like an uncertain one; see docs/errors/record-unreadable.md")
}

fn ambiguous(matches: &[Found]) -> Failure {
    let mut lines = vec![if matches.len() > CANDIDATES_MAX {
        format!("more than {CANDIDATES_MAX} records match")
    } else {
        format!("{} records match", matches.len())
    }];
    lines.extend(matches.iter().take(CANDIDATES_MAX).map(|found| {
        let scope = &found.record.key.scope;
        format!(
            "    {}  {}  namespace {}  operation {}",
            found.record.key.id,
            state_words(&found.record, found.now),
            or_dash(scope.namespace()),
            or_dash(scope.operation())
        )
    }));
    Failure::new(Code::RecordAmbiguous, lines.join("\n"))
        .hint("give more digits of the id, or --operation, --namespace and --principal with --key")
}
