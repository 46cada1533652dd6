//! Planned panics are part of the story and need not be printed.

use std::cell::Cell;
use std::panic;
use std::sync::Once;

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

static INSTALL: Once = Once::new();

/// Runs `work` without printing the panics of this thread.
pub fn quietly<T>(work: impl FnOnce() -> T) -> T {
    INSTALL.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_QUIET.get() {
                print(info);
            }
        }));
    });
    let was_quiet = IS_QUIET.replace(true);
    let result = work();
    IS_QUIET.set(was_quiet);
    result
}
