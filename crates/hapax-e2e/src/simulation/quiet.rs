//! Suppresses the output of planned panics.

use std::cell::Cell;
use std::panic;
use std::sync::Once;

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

static INSTALL: Once = Once::new();

/// Runs `work` without printing the panics of this thread.
pub fn without_panic_output<T>(work: impl FnOnce() -> T) -> T {
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
