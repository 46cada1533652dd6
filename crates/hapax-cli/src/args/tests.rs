use super::*;

use clap::CommandFactory;

#[test]
fn the_definition_is_consistent() {
    Args::command().debug_assert();
}

#[test]
fn help_never_shows_the_value_of_the_store_variable() {
    let mut command = Args::command();
    let store = command.get_arguments().find(|arg| arg.get_id() == "store").unwrap();
    assert!(store.is_hide_env_values_set());
    assert!(command.render_help().to_string().contains("HAPAX_STORE_URL"));
}

#[test]
fn states_are_parsed_by_their_names() {
    for state in State::ALL {
        assert_eq!(parse_state(state.name()), Ok(state));
    }
    assert!(parse_state("done").unwrap_err().contains("in_progress, completed"));
}

#[test]
fn an_interval_of_nothing_is_refused() {
    assert!(parse_interval("0s").is_err());
    assert_eq!(parse_interval("1h"), Ok(Duration::from_secs(3600)));
}
