use std::io;

use super::*;

/// An error whose message repeats its source, like those of some drivers.
#[derive(Debug)]
struct Echo(std::io::Error);

impl std::fmt::Display for Echo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Echo {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

#[test]
fn a_repeated_cause_is_printed_once() {
    let failure = Failure::new(Code::InputInvalid, "no").because(Echo(std::io::Error::other("refused")));
    assert_eq!(failure.causes().collect::<Vec<_>>(), ["refused"]);
}

#[test]
fn all_causes_are_printed() {
    let io = io::Error::new(io::ErrorKind::PermissionDenied, "no entry");
    let error = StoreError::new(StoreErrorKind::Unavailable, "open").with_source(io);
    let text = Failure::store(error, "cannot open the store").text();
    assert_eq!(
        text,
        "error[store-unavailable]: cannot open the store\n  because: open: the store is unavailable\n  \
         because: no entry\n  what to do: fix what the causes name, then try again"
    );
}
