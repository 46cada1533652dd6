//! The file: its options, and the line and column of each. Which names there are is asked of the schema.

use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Table;
use toml::de::{DeTable, DeValue};

use super::schema::{self, ROUTE};
use super::sources::{Place, Said, Target};
use crate::failure::{Code, Failure};
use crate::nearest::nearest;

/// The file that is read when none is named.
pub(crate) const FILE_DEFAULT: &str = "hapax.toml";

/// More is no configuration, and it would be held in memory as a whole.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The options that name files and directories. In a file they count from the file's own folder.
pub(super) const PATHS: [(&str, &str); 5] = [
    ("admin", "audit_dir"),
    ("admin", "token_file"),
    ("tls", "certificate"),
    ("tls", "key"),
    ("upstream_options", "ca_file"),
];

/// What a file says.
pub(super) struct FileSaid {
    pub(super) said: Vec<Said>,
    /// Where each `[[route]]` begins.
    pub(super) routes: Vec<Place>,
}

/// The file to read: the one that is named, or the usual one where there is one.
pub(crate) fn chosen(named: Option<&Path>) -> Option<PathBuf> {
    match named {
        Some(named) => Some(named.to_owned()),
        None => Path::new(FILE_DEFAULT).is_file().then(|| FILE_DEFAULT.into()),
    }
}

/// Reads the file.
pub(super) fn read(path: &Path) -> Result<FileSaid, Failure> {
    let text = text(path)?;
    let source = Source { path, text: &text };
    let parsed = |error: toml::de::Error| {
        let place = source.place(error.span().unwrap_or_default());
        // Not the error itself: it shows the line that it is about, which may hold a secret.
        place.wrong(error.message())
    };
    let places = DeTable::parse(&text).map_err(parsed)?;
    let values: Table = text.parse().map_err(parsed)?;
    let mut found = FileSaid { said: Vec::new(), routes: Vec::new() };
    for (key, place) in places.get_ref() {
        let (name, value) = (key.get_ref().as_ref(), &values[key.get_ref().as_ref()]);
        match (schema::section(name), place.get_ref(), value) {
            (None, _, value) => {
                let target = source.target("", None, name, key.span())?;
                found.said.push(Said { target, value: value.clone(), place: source.place(place.span()) });
            }
            (Some(ROUTE), DeValue::Array(tables), toml::Value::Array(values)) => {
                for (index, (place, value)) in tables.iter().zip(values).enumerate() {
                    found.routes.push(source.place(place.span()));
                    let (DeValue::Table(places), toml::Value::Table(values)) = (place.get_ref(), value)
                    else {
                        return Err(source.place(place.span()).wrong("`route` is a list of tables"));
                    };
                    source.section(ROUTE, Some(index), places, values, &mut found.said)?;
                }
            }
            (Some(section), DeValue::Table(places), toml::Value::Table(values)) if section != ROUTE => {
                source.section(section, None, places, values, &mut found.said)?;
            }
            (Some(ROUTE), ..) => {
                return Err(source
                    .place(key.span())
                    .wrong("`route` is a list of tables")
                    .hint("write [[route]] above each"));
            }
            (Some(section), ..) => {
                return Err(source
                    .place(key.span())
                    .wrong(format_args!("`{section}` is a section"))
                    .hint(format!("write [{section}] on a line of its own, and its options below")));
            }
        }
    }
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        found.said.iter_mut().try_for_each(|said| count_from(folder, said))?;
    }
    Ok(found)
}

/// Makes a relative path of the file one that counts from `folder`, whatever directory the program runs in.
fn count_from(folder: &Path, said: &mut Said) -> Result<(), Failure> {
    let option = (said.target.section, said.target.name);
    let toml::Value::String(text) = &mut said.value else { return Ok(()) };
    let (scheme, path) = match option {
        ("store", "url") => match text.strip_prefix("file:") {
            Some(path) => ("file:", path),
            None => return Ok(()),
        },
        _ if PATHS.contains(&option) => ("", &text[..]),
        _ => return Ok(()),
    };
    // An empty one is refused as it is.
    if path.is_empty() || Path::new(path).has_root() {
        return Ok(());
    }
    let counted = folder.join(path.strip_prefix("./").unwrap_or(path));
    let Some(counted) = counted.to_str() else {
        return Err(said
            .place
            .wrong(format_args!("`{}`: the folder of the file is not UTF-8", option.1))
            .hint("write the path from the root"));
    };
    *text = format!("{scheme}{counted}");
    Ok(())
}

fn text(path: &Path) -> Result<String, Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(Code::ConfigInvalid, format!("cannot read {}", path.display()))
            .because(error)
            .hint("name the file with --config FILE, or leave that out to run with what is usual")
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

/// A file's text, to tell places in it.
struct Source<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Source<'_> {
    fn place(&self, span: Range<usize>) -> Place {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Place::File {
            path: self.path.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }

    fn section(
        &self,
        section: &'static str,
        index: Option<usize>,
        places: &DeTable<'_>,
        values: &Table,
        said: &mut Vec<Said>,
    ) -> Result<(), Failure> {
        for (key, place) in places {
            let name = key.get_ref().as_ref();
            let target = self.target(section, index, name, key.span())?;
            said.push(Said { target, value: values[name].clone(), place: self.place(place.span()) });
        }
        Ok(())
    }

    fn target(
        &self,
        section: &'static str,
        index: Option<usize>,
        name: &str,
        span: Range<usize>,
    ) -> Result<Target, Failure> {
        let known = schema::known().iter().find(|known| known.section == section && known.name == name);
        known
            .map(|known| Target { index, ..known.into() })
            .ok_or_else(|| self.place(span).wrong(unknown(section, name)).hint(advice(section, name)))
    }
}

fn unknown(section: &str, name: &str) -> String {
    match section {
        "" => format!("there is no option or section `{name}`"),
        ROUTE => format!("there is no option `{name}` in [[route]]"),
        _ => format!("there is no option `{name}` in [{section}]"),
    }
}

/// What was meant: a name that is spelled nearly so, or the section in which this one is known.
fn advice(section: &str, name: &str) -> String {
    let here = schema::known().iter().filter(|known| known.section == section).map(|known| &*known.name);
    let sections = schema::sections().filter(|_| section.is_empty());
    if let Some(near) = nearest(name, here.chain(sections)) {
        return format!("did you mean `{near}`?");
    }
    let elsewhere = schema::known().iter().filter(|known| known.name == name && known.section != ROUTE);
    // At the top of the file before anywhere else.
    match elsewhere.min_by_key(|known| !known.section.is_empty()) {
        Some(known) if known.section.is_empty() => format!("write `{name}` above the first section"),
        Some(known) => format!("`{name}` belongs under [{}]", known.section),
        None => "see `hapax check --options` for every option".to_owned(),
    }
}
