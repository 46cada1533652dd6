//! `hapax check`: validates the configuration and the store, and prints the effective configuration with warnings.

use std::fmt::Write as _;

use hapax::http::{HttpPolicy, KeyMode, Settings};
use hapax_admin::text::printable;
use hapax_admin::{AdminListen, TOKEN_VARIABLE};
use hapax_core::{Health, Stats, Store};
use serde_json::{Value, json};

use crate::args::Check;
use crate::config::{self, Config, Flags, Route};
use crate::failure::{Code, Failure};
use crate::output::Output;
use crate::progress::Progress;
use crate::proxy::UpstreamService;
use crate::proxy::setup_failure;
use crate::stores::Access;

/// Settings of a route that are printed even if they have their defaults.
const ALWAYS_PRINTED: [&str; 9] =
    ["dialect", "header", "key", "lease", "methods", "on_lapse", "on_store_error", "principal", "retention"];

/// How to configure an upstream.
const UPSTREAM_NEEDED: &str =
    "`hapax serve` needs one: --upstream http://HOST:PORT, HAPAX_UPSTREAM or `upstream` in the file";

pub(crate) async fn run(check: &Check, flags: &Flags, output: Output) -> Result<(), Failure> {
    if check.schema {
        return output.document(&config::schema());
    }
    if check.options {
        return if output.json { output.document(&documents()) } else { output.text(&options()) };
    }
    let config = Config::load(flags, std::env::vars_os())?;
    let config = config.with_token(flags, std::env::var_os(TOKEN_VARIABLE))?;
    files(&config)?;
    let found = store(check, &config).await?;
    let warnings = warnings(&config, found.as_ref(), &flags.store_flags());
    if output.json {
        return output.document(&document(&config, found.as_ref(), &warnings));
    }
    output.text(&text(&config, found.as_ref(), &warnings))
}

/// Checks the files that `hapax serve` needs.
fn files(config: &Config) -> Result<(), Failure> {
    if let Some(tls) = &config.tls {
        tls.files().check().map_err(setup_failure)?;
    }
    if !config.upstream.is_empty() {
        drop(UpstreamService::new(&config.upstream, &config.upstream_options)?);
    }
    if config.admin.listen != AdminListen::Off {
        drop(config.admin.configured_token()?);
    }
    Ok(())
}

/// What the store reports.
struct StoreReport {
    health: Health,
    /// None if the store does not exist yet: the health is then that of its server.
    stats: Option<Stats>,
}

/// None if the store does not exist yet and has no server, and a sidecar would create it.
async fn store(check: &Check, config: &Config) -> Result<Option<StoreReport>, Failure> {
    let url = &config.store;
    if check.deep {
        Progress::new().during(format_args!("reading {url}"), url.verify()).await?;
    }
    let store = match url.open(Access::Read).await {
        Err(failure) if failure.code() == Code::StoreMissing => {
            return match url.server_health().await? {
                Some(health) => Ok(Some(StoreReport { health, stats: None })),
                None if is_to_serve(config) => Ok(None),
                None => Err(failure),
            };
        }
        opened => opened?,
    };
    let failed = |error| Failure::store(error, format!("cannot use {url}"));
    let health = Store::health(&*store).await.map_err(failed)?;
    let stats = store.stats().await.map_err(failed)?;
    Ok(Some(StoreReport { health, stats: Some(stats) }))
}

/// Whether this is the configuration of a sidecar, not only a store named by a flag or a variable.
fn is_to_serve(config: &Config) -> bool {
    config.file.is_some() || !config.upstream.is_empty()
}

/// `store_flags` are the flags by which another command finds the store.
fn warnings(config: &Config, report: Option<&StoreReport>, store_flags: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    if is_to_serve(config) && config.upstream.is_empty() {
        warnings.push(format!("no upstream configured; {UPSTREAM_NEEDED}"));
    }
    warnings.extend(config.warnings());
    warnings.extend(config.routes.iter().flat_map(|route| {
        route.warnings().into_iter().map(|warning| format!("{}: {warning}", route.paths()))
    }));
    let stats = report.and_then(|report| report.stats.as_ref());
    if stats.is_none() {
        warnings.push(format!("there is no store at {} yet; {}", config.store, config.store.created_by()));
    }
    warnings.extend(report.into_iter().flat_map(|report| report.health.warnings.iter().cloned()));
    if let Some(stats) = stats.filter(|stats| stats.uncertain > 0) {
        warnings.push(format!(
            "{} uncertain record(s) to be settled: hapax records list --state uncertain{store_flags}",
            stats.uncertain
        ));
    }
    warnings
}

fn counts(stats: &Stats) -> [(&'static str, u64); 5] {
    [
        ("in_progress", stats.in_progress),
        ("completed", stats.completed),
        ("failed", stats.failed),
        ("uncertain", stats.uncertain),
        ("released", stats.released),
    ]
}

fn text(config: &Config, report: Option<&StoreReport>, warnings: &[String]) -> String {
    let mut lines = Vec::new();
    lines.extend(config.file.iter().map(|file| format!("file     {}", file.display())));
    lines.push(format!("listen   {}", config.listen));
    lines.extend(config.upstream.iter().map(|uri| format!("upstream {uri}")));
    if config.upstream.is_empty() {
        // For a sidecar, a warning says the rest.
        let needed = if is_to_serve(config) { String::new() } else { format!("; {UPSTREAM_NEEDED}") };
        lines.push(format!("upstream none{needed}"));
    }
    lines.push(format!("admin    {}", config.admin.listen));
    lines.extend(config.audit_dir().map(|directory| format!("audit    {}", directory.display())));
    lines.extend(coverage(&config.routes));
    lines.extend(config.routes.iter().flat_map(route_lines));
    match report {
        None => lines.push(format!("store    {}", config.store)),
        Some(StoreReport { health, stats: None }) => lines.extend([
            format!("store    {} ({}, not created yet)", config.store, health.store),
            format!("promise  {}", health.promise.words()),
        ]),
        Some(StoreReport { health, stats: Some(stats) }) => {
            let counts: Vec<_> =
                counts(stats).iter().map(|(state, count)| format!("{state} {count}")).collect();
            lines.extend([
                format!("store    {} ({})", config.store, health.store),
                format!("promise  {}", health.promise.words()),
                format!("records  {} ({})", stats.records(), counts.join(", ")),
                format!("bytes    {}", stats.bytes),
            ]);
        }
    }
    lines.extend(warnings.iter().map(|warning| format!("warning  {}", printable(warning))));
    lines.push("ok".to_owned());
    lines.join("\n")
}

/// What is covered, as a table: paths, methods, keys, and how paths are compared.
fn coverage(routes: &[Route]) -> Vec<String> {
    let row = |route: &Route| {
        let settings = route.policy.settings();
        let word = |word: Value| word.as_str().unwrap_or_default().to_owned();
        let paths = if route.path.is_some() { route.paths() } else { "other paths" };
        let (methods, case) = match settings.key {
            Some(KeyMode::Off) => ("-".to_owned(), "-".to_owned()),
            _ => {
                let methods = settings.methods.unwrap_or_default();
                let methods: Vec<&str> = methods.iter().map(|method| method.as_str()).collect();
                (methods.join(" "), word(json!(settings.path_case)))
            }
        };
        [printable(paths), methods, word(json!(settings.key)), case]
    };
    let header = ["PATH", "METHODS", "KEY", "CASE"].map(str::to_owned);
    let rows: Vec<_> = std::iter::once(header).chain(routes.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths = [width(0), width(1), width(2)];
    let line = |(number, [path, methods, key, case]): (usize, &[String; 4])| {
        let title = if number == 0 { "covered" } else { "" };
        let [paths, wide, keys] = widths;
        format!("{title:8} {path:paths$}  {methods:wide$}  {key:keys$}  {case}")
    };
    let lines = rows.iter().enumerate().map(line);
    lines
        .chain(["         methods that are not listed pass as they are, with or without a key".to_owned()])
        .collect()
}

/// A route's policy: the main settings, and all others that differ from their defaults.
fn route_lines(route: &Route) -> Vec<String> {
    let named = |settings: Settings| match serde_json::to_value(settings) {
        Ok(Value::Object(options)) => options,
        _ => serde_json::Map::new(),
    };
    let default = named(HttpPolicy::default().settings());
    let printed = named(route.policy.settings()).into_iter().filter(|(name, value)| {
        !value.is_null() && (ALWAYS_PRINTED.contains(&name.as_str()) || default.get(name) != Some(value))
    });
    let urls = [("reconcile", &route.reconcile), ("authorise", &route.authorise)];
    let urls = urls.iter().filter_map(|(name, url)| {
        Some(format!("         {name} = \"{}\"", config::without_query(url.as_ref()?)))
    });
    let head = format!("route    {}", printable(route.paths()));
    let printed = printed.map(|(name, value)| format!("         {name} = {}", printable(&value.to_string())));
    let named = route.authorise_principal.as_ref();
    let named = named.map(|name| format!("         authorise_principal = \"{name}\""));
    std::iter::once(head).chain(printed).chain(urls).chain(named).collect()
}

fn document(config: &Config, report: Option<&StoreReport>, warnings: &[String]) -> Value {
    let store = json!({ "url": config.store.to_string() });
    let audit = config.audit_dir().map(|directory| directory.display().to_string());
    let mut document =
        json!({ "warnings": warnings, "config": config.document(), "audit": audit, "store": store });
    let stats = report.and_then(|report| report.stats.as_ref());
    document["store"]["exists"] = stats.is_some().into();
    if let Some(StoreReport { health, .. }) = report {
        document["store"]["kind"] = health.store.into();
        document["promise"] = health.promise.words().into();
    }
    if let Some(stats) = stats {
        document["store"]["bytes"] = stats.bytes.into();
        document["records"] = stats.records().into();
        let counts = counts(stats).into_iter();
        document["states"] = counts.map(|(state, count)| (state.to_owned(), Value::from(count))).collect();
    }
    document
}

/// All options, as JSON documents.
fn documents() -> Vec<Value> {
    let document = |known: &config::OptionInfo| {
        json!({ "section": known.section, "name": known.name, "variable": known.variable(),
            "default": known.default, "meaning": known.description })
    };
    config::known().iter().map(document).collect()
}

/// All options, as Markdown tables for the reference page.
pub(crate) fn options() -> String {
    let mut text = String::new();
    let mut section = None;
    for known in config::known() {
        if section != Some(&known.section) {
            section = Some(&known.section);
            let title = match known.section.as_str() {
                "" => "At the top of the file".to_owned(),
                "route" => "`[[route]]`: all options of `[defaults]`, and".to_owned(),
                name => format!("`[{name}]`"),
            };
            let _ = write!(
                text,
                "\n### {title}\n\n| option | variable | default | meaning |\n|---|---|---|---|\n"
            );
        }
        if !is_inherited(known) {
            let variable = known.variable().map(|name| format!("`{name}`")).unwrap_or_default();
            let default =
                if known.default.is_empty() { String::new() } else { format!("`{}`", known.default) };
            let description = known.description.replace('|', "\\|");
            let _ = writeln!(text, "| `{}` | {variable} | {default} | {description} |", known.name);
        }
    }
    text.trim().to_owned()
}

/// Whether the option of a route is also one of `[defaults]`.
fn is_inherited(option: &config::OptionInfo) -> bool {
    option.section == "route"
        && config::known().iter().any(|known| known.section == "defaults" && known.name == option.name)
}
