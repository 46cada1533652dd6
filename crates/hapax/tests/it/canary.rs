//! No key, principal, input or result in human-readable output: not in `Debug`, not in errors.

use hapax::core::{Lookup, ScopedKey};
use hapax::{Key, OnceError, Scope};

use crate::world::World;

const CANARY: &str = "canary-7f3a";

#[tokio::test(start_paused = true)]
async fn debug_and_errors_show_hashes_only() {
    let world = World::new();
    let scope = Scope::new("charge").principal(CANARY);
    let key = Key::new(CANARY).unwrap();
    let once = |input: &'static str| world.hapax.once(scope.clone(), CANARY).input(input);
    once(CANARY).run(|_cx| async { Ok::<_, String>(CANARY.to_owned()) }).await.unwrap();
    let mismatch = once("other").run(|_cx| async { Ok::<_, String>(String::new()) }).await.unwrap_err();
    assert!(matches!(mismatch, OnceError::Mismatch));
    let Lookup::Found { record, .. } = world.hapax.get(scope.clone(), CANARY).await.unwrap() else {
        panic!()
    };
    let shown = [
        format!("{key:?} {scope:?} {:?}", ScopedKey::new(scope.clone(), &key)),
        format!("{record:?}"),
        format!("{mismatch} {mismatch:?}"),
        format!("{:?}", world.hapax),
    ];
    for text in shown {
        assert!(!text.contains(CANARY), "{text}");
    }
    let wrong =
        world.hapax.once("charge", format!("{CANARY}\u{7}")).run(|_cx| async { Ok::<_, String>(()) }).await;
    let wrong = wrong.unwrap_err();
    assert!(matches!(wrong, OnceError::Key(_)));
    let text = format!(
        "{wrong} {wrong:?} {:?}",
        std::error::Error::source(&std::io::Error::other(wrong.to_string()))
    );
    assert!(!text.contains(CANARY), "{text}");
}
