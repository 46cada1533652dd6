//! The return type: as written, and of the protected function.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, GenericArgument, Path, PathArguments, Result, ReturnType, Type, parse_quote};

use super::borrowed;
use crate::attr::Options;

/// The return type as written.
pub(super) struct Returned {
    pub(super) written: Type,
    pub(super) span: Span,
    kind: Kind,
}

enum Kind {
    /// Not a `Result`.
    Plain,
    /// `Result<T, E>`.
    Result { value: Type, error: Type },
    /// `Result<T, Fail<E>>`.
    Fail { value: Type, error: Type },
    /// An alias named `Result` with other parameters, such as `io::Result<T>`.
    Alias,
}

impl Returned {
    pub(super) fn of(output: &ReturnType) -> Result<Self> {
        match output {
            ReturnType::Default => {
                Ok(Self { written: parse_quote!(()), span: Span::call_site(), kind: Kind::Plain })
            }
            ReturnType::Type(_, ty) => Self::of_type(ty),
        }
    }

    pub(super) fn of_type(ty: &Type) -> Result<Self> {
        if let Type::ImplTrait(opaque) = ty {
            let message =
                "the result is recorded and replayed, so its type must have a name: return a concrete type";
            return Err(Error::new(opaque.span(), message));
        }
        borrowed::refuse_in_return(ty)?;
        Ok(Self { written: ty.clone(), span: ty.span(), kind: Kind::of(ty) })
    }

    /// The rules between the return type and the options.
    pub(super) fn check(&self, options: &Options) -> Result<()> {
        let is_plain = matches!(self.kind, Kind::Plain);
        if let (Some(map_err), true) = (&options.map_err, is_plain) {
            let message = "`map_err` needs a function that returns a `Result`, whose error it makes";
            return Err(Error::new(map_err.span(), message));
        }
        match (options.pins_errors, &self.kind) {
            (Some(span), Kind::Plain) => {
                Err(Error::new(span, "`on_error` needs a function that returns a `Result`"))
            }
            (Some(span), Kind::Fail { .. }) => {
                let message = "a `Fail` states for each error what happens to the key: leave `on_error` out, and return \
                               `Fail::permanent(error)` for errors to pin";
                Err(Error::new(span, message))
            }
            _ => Ok(()),
        }
    }

    /// The type of the protected function's result.
    pub(super) fn protected(&self, options: &Options, hapax: &Path) -> TokenStream {
        let written = &self.written;
        if options.map_err.is_some() {
            return quote!(#written);
        }
        match &self.kind {
            Kind::Plain => {
                quote!(::core::result::Result<#written, #hapax::OnceError<::core::convert::Infallible>>)
            }
            Kind::Result { value, error } | Kind::Fail { value, error } => {
                quote!(::core::result::Result<#value, #hapax::OnceError<#error>>)
            }
            Kind::Alias => quote! {
                ::core::result::Result<
                    <#written as #hapax::IntoOutcome>::Value,
                    #hapax::OnceError<<#written as #hapax::IntoOutcome>::Error>,
                >
            },
        }
    }

    /// The type that gives a result its meaning for the record, if it does not do so itself.
    pub(super) fn wrapper(&self, options: &Options, hapax: &Path) -> Option<TokenStream> {
        match self.kind {
            Kind::Plain => Some(quote!(#hapax::__macros::Plain)),
            _ if options.pins_errors.is_some() => Some(quote!(#hapax::__macros::PinErrors)),
            _ => None,
        }
    }

    /// A check that a type which does not look like a `Result` is none: its errors would be kept as values.
    pub(super) fn check_alias(&self, is_generic: bool, hapax: &Path) -> Option<TokenStream> {
        if !matches!(self.kind, Kind::Plain) {
            return None;
        }
        let written = &self.written;
        let check = quote_spanned! {self.span=> {
            use #hapax::__macros::NotResult as _;
            ::core::assert!(
                !#hapax::__macros::Probe::<#written>::IS_RESULT,
                "this return type is an alias of a `Result`, which `#[idempotent]` cannot see: write `Result<T, E>`"
            );
        }};
        // Only an item is evaluated for a function that is never called, and no item sees the parameters.
        Some(if is_generic { quote!(const { #check }) } else { quote!(const _: () = #check;) })
    }
}

impl Kind {
    fn of(ty: &Type) -> Self {
        let Some((name, arguments)) = last_segment(ty) else { return Self::Plain };
        match (name.as_str(), &arguments[..]) {
            ("Result", [value, error]) => match last_segment(error) {
                Some((name, inner)) if name == "Fail" && inner.len() == 1 => {
                    Self::Fail { value: value.clone(), error: inner[0].clone() }
                }
                _ => Self::Result { value: value.clone(), error: error.clone() },
            },
            ("Result", _) => Self::Alias,
            _ => Self::Plain,
        }
    }
}

/// The last name of a path, with its type parameters.
fn last_segment(ty: &Type) -> Option<(String, Vec<Type>)> {
    let path = match ty {
        Type::Path(path) => &path.path,
        Type::Group(group) => return last_segment(&group.elem),
        _ => return None,
    };
    let last = path.segments.last()?;
    let arguments = match &last.arguments {
        PathArguments::AngleBracketed(list) => list
            .args
            .iter()
            .filter_map(|argument| match argument {
                GenericArgument::Type(ty) => Some(ty.clone()),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    };
    Some((last.ident.to_string(), arguments))
}
