//! The options of the attribute: what is typed, checked one by one. What they mean together is decided by `expand`.

mod duration;
mod nearest;
mod template;

use std::time::Duration;

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, Ident, LitStr, Path, Result, Token};

pub(crate) use self::template::{Member, Piece, Template};

/// All options, in the order of the documentation.
const KNOWN: [&str; 14] = [
    "key",
    "scope",
    "retention",
    "lease",
    "wait",
    "deadline",
    "on_error",
    "on_lapse",
    "engine",
    "context",
    "skip",
    "map_err",
    "unprotected",
    "crate",
];

/// The options as typed.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) key: Option<Template>,
    pub(crate) scope: Option<LitStr>,
    pub(crate) retention: Option<Duration>,
    pub(crate) lease: Option<Duration>,
    pub(crate) wait: Option<Duration>,
    pub(crate) deadline: Option<Duration>,
    /// Present if errors are pinned, with the place of the option.
    pub(crate) pins_errors: Option<Span>,
    /// The variant of `OnLapse`.
    pub(crate) on_lapse: Option<&'static str>,
    pub(crate) engine: Option<Expr>,
    pub(crate) context: Option<Ident>,
    pub(crate) skip: Vec<Ident>,
    pub(crate) map_err: Option<Expr>,
    pub(crate) unprotected: Unprotected,
    /// The path of the crate `hapax`.
    pub(crate) hapax: Option<Path>,
}

/// How the unprotected form is called.
#[derive(Default)]
pub(crate) enum Unprotected {
    /// `name::unprotected`, for a function outside of an `impl`.
    #[default]
    InType,
    /// A function beside it.
    Beside { name: Ident, is_associated: bool },
    /// Not at all.
    None,
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut options = Self::default();
        let mut typed: Vec<String> = Vec::new();
        while !input.is_empty() {
            let name = input.call(Ident::parse_any)?;
            let text = name.unraw().to_string();
            if !KNOWN.contains(&text.as_str()) {
                return Err(Error::new(name.span(), unknown(&text)));
            }
            if typed.contains(&text) {
                return Err(Error::new(name.span(), format!("the option `{text}` is given twice")));
            }
            options.set(&name, &text, input)?;
            typed.push(text);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }
}

fn unknown(name: &str) -> String {
    match nearest::nearest(name, &KNOWN) {
        Some(near) => format!("unknown option `{name}`, did you mean `{near}`?"),
        None => format!("unknown option `{name}`; the options are {}", KNOWN.join(", ")),
    }
}

impl Options {
    fn set(&mut self, name: &Ident, text: &str, input: ParseStream<'_>) -> Result<()> {
        if text == "skip" {
            self.skip = skipped(name, input)?;
            return Ok(());
        }
        if !input.peek(Token![=]) {
            return Err(Error::new(name.span(), format!("write `{text} = {}`", example(text))));
        }
        input.parse::<Token![=]>()?;
        match text {
            "key" => self.key = Some(Template::parse(&string(text, input)?)?),
            "scope" => self.scope = Some(scope(string(text, input)?)?),
            "retention" => self.retention = Some(positive(text, input)?),
            "lease" => self.lease = Some(positive(text, input)?),
            "wait" => self.wait = Some(duration(text, input)?),
            "deadline" => self.deadline = Some(positive(text, input)?),
            "on_error" => {
                let (span, choice) = choice(text, input, ["release", "pin"])?;
                self.pins_errors = (choice == "pin").then_some(span);
            }
            "on_lapse" => {
                let (_, choice) = choice(text, input, ["uncertain", "rerun"])?;
                self.on_lapse = Some(if choice == "rerun" { "Rerun" } else { "Uncertain" });
            }
            "engine" => self.engine = Some(input.parse()?),
            "context" => self.context = Some(input.parse()?),
            "map_err" => self.map_err = Some(input.parse()?),
            "unprotected" => self.unprotected = unprotected(input)?,
            _ => self.hapax = Some(input.call(Path::parse_mod_style)?),
        }
        Ok(())
    }
}

/// A value to show where there is none, or a wrong one.
fn example(option: &str) -> &'static str {
    match option {
        "key" => "\"order:{order_id}\"",
        "scope" => "\"orders\"",
        "retention" | "lease" | "wait" | "deadline" => "\"30s\"",
        "on_error" => "pin",
        "on_lapse" => "rerun",
        "engine" => "self.hapax",
        "context" => "cx",
        "map_err" => "MyError::from",
        "unprotected" => "\"other_name\"",
        _ => "::hapax",
    }
}

fn string(option: &str, input: ParseStream<'_>) -> Result<LitStr> {
    let expected = format!("`{option}` takes a string: `{option} = {}`", example(option));
    input.parse().map_err(|error: Error| Error::new(error.span(), expected))
}

fn duration(option: &str, input: ParseStream<'_>) -> Result<Duration> {
    let literal = string(option, input)?;
    let wrong = || Error::new(literal.span(), duration::EXPECTED);
    duration::parse(&literal.value()).ok_or_else(wrong)
}

fn positive(option: &str, input: ParseStream<'_>) -> Result<Duration> {
    let span = input.span();
    let duration = duration(option, input)?;
    if duration.is_zero() {
        return Err(Error::new(span, format!("`{option}` cannot be zero")));
    }
    Ok(duration)
}

fn scope(literal: LitStr) -> Result<LitStr> {
    if literal.value().trim().is_empty() {
        return Err(Error::new(literal.span(), "the scope is empty: name the operation, such as \"orders\""));
    }
    Ok(literal)
}

fn choice(option: &str, input: ParseStream<'_>, choices: [&'static str; 2]) -> Result<(Span, &'static str)> {
    let [one, other] = choices;
    let expected = format!("`{option}` is `{one}` or `{other}`");
    let word: Ident = input.parse().map_err(|error: Error| Error::new(error.span(), &expected))?;
    let found = choices.into_iter().find(|choice| word == *choice);
    found.map(|choice| (word.span(), choice)).ok_or_else(|| Error::new(word.span(), expected))
}

fn skipped(option: &Ident, input: ParseStream<'_>) -> Result<Vec<Ident>> {
    if !input.peek(syn::token::Paren) {
        return Err(Error::new(option.span(), "write `skip(argument, other_argument)`"));
    }
    let names;
    syn::parenthesized!(names in input);
    Ok(Punctuated::<Ident, Token![,]>::parse_terminated(&names)?.into_iter().collect())
}

fn unprotected(input: ParseStream<'_>) -> Result<Unprotected> {
    const EXPECTED: &str = "`unprotected` is the name of a function, such as \"pay_unprotected\", \"Self::name\" in an `impl`, or `none`";
    if input.peek(Ident) {
        let word: Ident = input.parse()?;
        let is_none = word == "none";
        return is_none.then_some(Unprotected::None).ok_or_else(|| Error::new(word.span(), EXPECTED));
    }
    let literal: LitStr = input.parse().map_err(|error: Error| Error::new(error.span(), EXPECTED))?;
    let path = literal.parse_with(Path::parse_mod_style).map_err(|_| Error::new(literal.span(), EXPECTED))?;
    let names: Vec<&Ident> = path.segments.iter().map(|segment| &segment.ident).collect();
    match names[..] {
        [name] => Ok(Unprotected::Beside { name: name.clone(), is_associated: false }),
        [first, name] if first == "Self" => {
            Ok(Unprotected::Beside { name: name.clone(), is_associated: true })
        }
        _ => Err(Error::new(literal.span(), EXPECTED)),
    }
}
