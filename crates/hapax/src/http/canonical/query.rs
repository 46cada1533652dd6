//! Queries: the order of parameters with different names does not count, the order within one name does (F-04).

use std::borrow::Cow;

use super::percent;

/// The query sorted by name. Only unreserved characters are decoded: `+` differs from `%20`, and a name without `=`
/// differs from one with an empty value.
pub(crate) fn query(raw: &str) -> Cow<'_, str> {
    let spelled = percent(raw);
    if spelled.split('&').map(name).is_sorted() {
        return spelled;
    }
    let mut parameters: Vec<_> = spelled.split('&').collect();
    // The sort is stable, so equal names keep their order.
    parameters.sort_by_key(|parameter| name(parameter));
    Cow::Owned(parameters.join("&"))
}

fn name(parameter: &str) -> &str {
    parameter.split_once('=').map_or(parameter, |(name, _)| name)
}
