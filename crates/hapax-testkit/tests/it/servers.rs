//! The servers of store tests do what tests request.

use std::time::Duration;

use hapax_testkit::servers::{Aof, RedisServer};

#[test]
fn a_server_has_the_settings_of_its_options() {
    for (options, kept) in [(RedisServer::options(), ""), (RedisServer::options().aof(Aof::Always), "value")]
    {
        let server = options.start();
        server.command(&["SET", "key", "value"]);
        server.kill();
        server.restart();
        assert_eq!(server.command(&["GET", "key"]), kept);
    }
}

#[test]
fn a_servers_clock_moves_only_with_the_test() {
    let server = RedisServer::options().clock().start();
    server.command(&["SET", "key", "value", "PX", "1000"]);
    let first = server.command(&["TIME"]);
    assert_eq!(server.command(&["TIME"]), first, "the clock stands still");
    server.clock().advance(Duration::from_millis(1000));
    assert_eq!(server.command(&["GET", "key"]), "value", "it has not expired");
    server.clock().advance(Duration::from_millis(1));
    assert_eq!(server.command(&["GET", "key"]), "");
}

#[test]
fn calls_are_counted() {
    let server = RedisServer::start();
    assert_eq!(server.calls("get"), 0);
    server.command(&["GET", "key"]);
    server.command(&["EVAL", "return redis.call('GET', KEYS[1])", "1", "key"]);
    assert_eq!(server.calls("get"), 2);
}
