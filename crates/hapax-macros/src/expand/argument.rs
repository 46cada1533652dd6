//! One argument: its name, and how it is kept for an execution that outlives its caller.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Error, Ident, Pat, PatType, Path, Result, Type};

use super::borrowed;

/// One argument.
pub(super) struct Argument {
    /// Its name in the protected function, which has no patterns.
    pub(super) ident: Ident,
    /// Its name in the fingerprint.
    pub(super) name: String,
    /// As written.
    pub(super) pattern: Pat,
    pub(super) ty: Type,
    passing: Passing,
    has_name: bool,
}

/// How a value gets into the execution.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Passing {
    /// Moved.
    Value,
    /// Cloned, and lent to the body.
    Reference,
    /// Made owned.
    Cow,
}

impl Argument {
    pub(super) fn of(number: usize, typed: &PatType) -> Result<Self> {
        let is_conditional =
            |attr: &&syn::Attribute| attr.path().is_ident("cfg") || attr.path().is_ident("cfg_attr");
        if let Some(conditional) = typed.attrs.iter().find(is_conditional) {
            return Err(Error::new(
                conditional.span(),
                "an argument cannot be conditional: write two functions",
            ));
        }
        let (ident, has_name) = match &*typed.pat {
            Pat::Ident(pattern) if pattern.by_ref.is_none() && pattern.subpat.is_none() => {
                (pattern.ident.clone(), true)
            }
            _ => (format_ident!("argument_{number}", span = Span::mixed_site()), false),
        };
        Ok(Self {
            name: if has_name { ident.unraw().to_string() } else { number.to_string() },
            ident,
            pattern: (*typed.pat).clone(),
            passing: Passing::of(&typed.ty)?,
            ty: (*typed.ty).clone(),
            has_name,
        })
    }

    pub(super) fn is_named(&self, name: &Ident) -> bool {
        self.has_name && self.ident.unraw() == name.unraw()
    }

    /// The name for a message.
    pub(super) fn quoted(&self) -> Option<String> {
        self.has_name.then(|| format!("`{}`", self.name))
    }

    /// An expression of a reference to it, before it is kept.
    pub(super) fn borrowed(&self) -> TokenStream {
        let ident = at(self.ty.span(), &self.ident);
        if self.passing == Passing::Reference {
            quote!(#ident)
        } else {
            quote_spanned!(self.ty.span()=> &#ident)
        }
    }

    /// The statement that keeps it.
    pub(super) fn keep(&self, hapax: &Path) -> TokenStream {
        let ident = &self.ident;
        let value = at(self.ty.span(), ident);
        self.passing.keep(&quote!(#value), ident, hapax, self.ty.span())
    }

    /// The expression of what the body gets.
    pub(super) fn lent(&self, hapax: &Path) -> TokenStream {
        self.passing.lent(&self.ident, hapax)
    }

    /// Counts as a use of it, because the attribute names it.
    pub(super) fn use_in_body(&self) -> TokenStream {
        let ident = &self.ident;
        quote!(let _ = &#ident;)
    }
}

impl Passing {
    pub(super) fn of(ty: &Type) -> Result<Self> {
        match ty {
            Type::Group(group) => Self::of(&group.elem),
            Type::Paren(paren) => Self::of(&paren.elem),
            Type::Reference(reference) if borrowed::is_static(reference.lifetime.as_ref()) => Ok(Self::Value),
            Type::Reference(reference) => {
                if let Some(mutability) = &reference.mutability {
                    let message = "the execution may outlive its caller, so it cannot change what the caller holds: take the \
                                   value and return the new one, or share it in an `Arc<Mutex<_>>`";
                    return Err(Error::new(mutability.span(), message));
                }
                if let Type::TraitObject(object) = without_parens(&reference.elem) {
                    let message = "a trait object behind a reference cannot be cloned for the execution, which may outlive \
                                   its caller: take an `Arc<dyn …>`";
                    return Err(Error::new(object.span(), message));
                }
                borrowed::refuse_in_argument(&reference.elem)?;
                Ok(Self::Reference)
            }
            Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Cow") => {
                borrowed::refuse_in_cow(path)?;
                Ok(Self::Cow)
            }
            other => {
                borrowed::refuse_in_argument(other)?;
                Ok(Self::Value)
            }
        }
    }

    /// `let kept = …;` from `value`; nothing for what is moved under its own name.
    pub(super) fn keep(self, value: &TokenStream, kept: &Ident, hapax: &Path, span: Span) -> TokenStream {
        let hapax = at(span, hapax);
        match self {
            Self::Value if *kept == value.to_string() => quote!(),
            Self::Value => quote!(let #kept = #value;),
            // Through a variable of the expansion, or the compiler suggests to borrow it once more.
            Self::Reference => {
                let place = Span::mixed_site().located_at(span);
                let borrowed = Ident::new("borrowed", place);
                quote_spanned!(place=> let #kept = { let #borrowed = #value; #hapax::__macros::keep(#borrowed) };)
            }
            Self::Cow => quote_spanned!(span=> let #kept = #hapax::__macros::owned_cow(#value);),
        }
    }

    pub(super) fn lent(self, kept: &Ident, hapax: &Path) -> TokenStream {
        if self == Self::Reference { quote!(#hapax::__macros::Lend::lend(&#kept)) } else { quote!(#kept) }
    }
}

/// The same tokens at another place, to which errors about them point.
pub(super) fn at(place: Span, tokens: &impl ToTokens) -> TokenStream {
    let tokens = tokens.to_token_stream().into_iter().map(|mut token| {
        token.set_span(place.resolved_at(token.span()));
        token
    });
    tokens.collect()
}

fn without_parens(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => without_parens(&group.elem),
        Type::Paren(paren) => without_parens(&paren.elem),
        other => other,
    }
}
