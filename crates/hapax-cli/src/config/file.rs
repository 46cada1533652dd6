//! Reads the configuration file, with the line and column of each option. Known names come from the schema.

use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Table;
use toml::de::{DeTable, DeValue};

use super::schema::{self, ROUTE};
use super::sources::{Entry, Location, OptionKey};
use crate::failure::{Code, Failure};
use crate::nearest::nearest;

/// The default file.
pub(crate) const FILE_DEFAULT: &str = "hapax.toml";

/// A larger file is refused, because it is read into memory.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Options that are paths. In the file, they are relative to the file's directory.
pub(super) const PATHS: [(&str, &str); 5] = [
    ("admin", "audit_dir"),
    ("admin", "token_file"),
    ("tls", "certificate"),
    ("tls", "key"),
    ("upstream_options", "ca_file"),
];

/// The entries of a file.
pub(super) struct FileEntries {
    pub(super) entries: Vec<Entry>,
    /// The location of each `[[route]]`.
    pub(super) routes: Vec<Location>,
}

/// The file to read: the named one, or the default one if it exists.
pub(crate) fn chosen(named: Option<&Path>) -> Option<PathBuf> {
    match named {
        Some(named) => Some(named.to_owned()),
        None => Path::new(FILE_DEFAULT).is_file().then(|| FILE_DEFAULT.into()),
    }
}

/// Reads the file.
pub(super) fn read(path: &Path) -> Result<FileEntries, Failure> {
    let text = text(path)?;
    let source = Source { path, text: &text };
    let parsed = |error: toml::de::Error| {
        let location = source.location(error.span().unwrap_or_default());
        // Not the error's `Display`: it shows the source line, which may contain a secret.
        location.invalid(error.message())
    };
    let spanned = DeTable::parse(&text).map_err(parsed)?;
    let values: Table = text.parse().map_err(parsed)?;
    let mut found = FileEntries { entries: Vec::new(), routes: Vec::new() };
    for (key, location) in spanned.get_ref() {
        let (name, value) = (key.get_ref().as_ref(), &values[key.get_ref().as_ref()]);
        match (schema::section(name), location.get_ref(), value) {
            (None, _, value) => {
                let option = source.option_key("", None, name, key.span())?;
                found.entries.push(Entry {
                    option,
                    value: value.clone(),
                    location: source.location(location.span()),
                });
            }
            (Some(ROUTE), DeValue::Array(tables), toml::Value::Array(values)) => {
                for (index, (location, value)) in tables.iter().zip(values).enumerate() {
                    found.routes.push(source.location(location.span()));
                    let (DeValue::Table(spanned), toml::Value::Table(values)) = (location.get_ref(), value)
                    else {
                        return Err(source.location(location.span()).invalid("`route` is a list of tables"));
                    };
                    source.section(ROUTE, Some(index), spanned, values, &mut found.entries)?;
                }
            }
            (Some(section), DeValue::Table(spanned), toml::Value::Table(values)) if section != ROUTE => {
                source.section(section, None, spanned, values, &mut found.entries)?;
            }
            (Some(ROUTE), ..) => {
                return Err(source
                    .location(key.span())
                    .invalid("`route` is a list of tables")
                    .hint("write [[route]] above each"));
            }
            (Some(section), ..) => {
                return Err(source
                    .location(key.span())
                    .invalid(format_args!("`{section}` is a section"))
                    .hint(format!("write [{section}] on a line of its own, and its options below")));
            }
        }
    }
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        found.entries.iter_mut().try_for_each(|entry| resolve_path(folder, entry))?;
    }
    Ok(found)
}

/// Makes a relative path in the file relative to `folder` instead of the working directory.
fn resolve_path(folder: &Path, entry: &mut Entry) -> Result<(), Failure> {
    let option = (entry.option.section, entry.option.name);
    let toml::Value::String(text) = &mut entry.value else { return Ok(()) };
    let (scheme, path) = match option {
        ("store", "url") => match text.strip_prefix("file:") {
            Some(path) => ("file:", path),
            None => return Ok(()),
        },
        _ if PATHS.contains(&option) => ("", &text[..]),
        _ => return Ok(()),
    };
    // An empty path is refused later.
    if path.is_empty() || Path::new(path).has_root() {
        return Ok(());
    }
    let counted = folder.join(path.strip_prefix("./").unwrap_or(path));
    let Some(counted) = counted.to_str() else {
        return Err(entry
            .location
            .invalid(format_args!("`{}`: the directory of the file is not UTF-8", option.1))
            .hint("write an absolute path"));
    };
    *text = format!("{scheme}{counted}");
    Ok(())
}

fn text(path: &Path) -> Result<String, Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(Code::ConfigInvalid, format!("cannot read {}", path.display()))
            .because(error)
            .hint("set the file with --config FILE, or leave it out to run with defaults")
    };
    let mut text = String::new();
    let file = File::open(path).map_err(failed)?;
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        let message = format!("{} is larger than {FILE_BYTES_MAX} bytes", path.display());
        return Err(Failure::new(Code::ConfigInvalid, message));
    }
    Ok(text)
}

/// A file's text, to find locations in it.
struct Source<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Source<'_> {
    fn location(&self, span: Range<usize>) -> Location {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Location::File {
            path: self.path.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }

    fn section(
        &self,
        section: &'static str,
        index: Option<usize>,
        spanned: &DeTable<'_>,
        values: &Table,
        entries: &mut Vec<Entry>,
    ) -> Result<(), Failure> {
        for (key, location) in spanned {
            let name = key.get_ref().as_ref();
            let option = self.option_key(section, index, name, key.span())?;
            entries.push(Entry {
                option,
                value: values[name].clone(),
                location: self.location(location.span()),
            });
        }
        Ok(())
    }

    fn option_key(
        &self,
        section: &'static str,
        index: Option<usize>,
        name: &str,
        span: Range<usize>,
    ) -> Result<OptionKey, Failure> {
        let known = schema::known().iter().find(|known| known.section == section && known.name == name);
        known
            .map(|known| OptionKey { index, ..known.into() })
            .ok_or_else(|| self.location(span).invalid(unknown(section, name)).hint(advice(section, name)))
    }
}

fn unknown(section: &str, name: &str) -> String {
    match section {
        "" => format!("unknown option or section `{name}`"),
        ROUTE => format!("unknown option `{name}` in [[route]]"),
        _ => format!("unknown option `{name}` in [{section}]"),
    }
}

/// What to write instead: a similar name, or the section that has the option.
fn advice(section: &str, name: &str) -> String {
    let here = schema::known().iter().filter(|known| known.section == section).map(|known| &*known.name);
    let sections = schema::sections().filter(|_| section.is_empty());
    if let Some(near) = nearest(name, here.chain(sections)) {
        return format!("did you mean `{near}`?");
    }
    let in_other_sections =
        schema::known().iter().filter(|known| known.name == name && known.section != ROUTE);
    // The top of the file is preferred.
    match in_other_sections.min_by_key(|known| !known.section.is_empty()) {
        Some(known) if known.section.is_empty() => format!("write `{name}` above the first section"),
        Some(known) => format!("`{name}` belongs under [{}]", known.section),
        None => "see `hapax check --options` for all options".to_owned(),
    }
}
