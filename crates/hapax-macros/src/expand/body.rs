//! Where the body is: in a function of its own, which the protected one calls, or inside of it.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{Block, FnArg, GenericParam, Ident, Result, parse_quote};

use super::Function;
use super::argument::Argument;
use super::receiver::replace_self;
use crate::attr::Unprotected;

/// Where the body is.
pub(super) enum Body {
    /// In `name::unprotected`.
    InType,
    /// In a function beside the protected one.
    Beside { name: Ident, is_associated: bool },
    /// In an async block.
    Inline(Block),
}

impl Body {
    pub(super) fn of(function: &Function<'_>) -> Result<Self> {
        let is_in_impl = function.is_in_impl();
        match &function.options.unprotected {
            Unprotected::Beside { name, .. } if function.boxed.is_some() => Err(syn::Error::new(
                name.span(),
                "a method of a trait has no place for an unprotected form: let it call a method of the type, and protect that",
            )),
            Unprotected::Beside { name, is_associated } => {
                Ok(Self::Beside { name: name.clone(), is_associated: *is_associated || is_in_impl })
            }
            Unprotected::InType if !is_in_impl => Ok(Self::InType),
            _ => {
                let mut block = match &function.boxed {
                    Some(boxed) => boxed.content(function.named_in_options()),
                    None => (*function.item.block).clone(),
                };
                replace_self(&mut block)?;
                Ok(Self::Inline(block))
            }
        }
    }

    /// The path by which the protected function calls the body.
    pub(super) fn path(&self, function: &Function<'_>) -> Option<TokenStream> {
        let sig = &function.item.sig;
        let path = match self {
            Self::InType => {
                let name = &sig.ident;
                quote!(#name::unprotected)
            }
            Self::Beside { name, is_associated: true } => quote!(Self::#name),
            Self::Beside { name, is_associated: false } => quote!(#name),
            Self::Inline(_) => return None,
        };
        let parameters: Vec<&Ident> = sig
            .generics
            .params
            .iter()
            .filter_map(|parameter| match parameter {
                GenericParam::Type(parameter) => Some(&parameter.ident),
                GenericParam::Const(parameter) => Some(&parameter.ident),
                GenericParam::Lifetime(_) => None,
            })
            .collect();
        Some(if parameters.is_empty() { path } else { quote!(#path::<#(#parameters),*>) })
    }

    /// The item that has the body, outside of the protected function.
    pub(super) fn item(&self, function: &Function<'_>) -> Option<TokenStream> {
        let item = function.item;
        let mut sig = item.sig.clone();
        let protected = &item.sig.ident;
        sig.ident = match self {
            Self::InType => Ident::new("unprotected", protected.span()),
            Self::Beside { name, .. } => name.clone(),
            Self::Inline(_) => return None,
        };
        if let Some(context) = &function.options.context {
            let hapax = &function.hapax;
            let context: FnArg = parse_quote!(#context: #hapax::Context);
            sig.inputs.insert(usize::from(function.receiver.is_some()), context);
        }
        let link = if matches!(self, Self::Beside { is_associated: true, .. }) { "Self::" } else { "fn@" };
        let about = format!("[`{0}`]({link}{0}) without protection: every call runs.\n\n", protected.unraw());
        let names = ["cfg", "cfg_attr", "doc", "allow", "warn", "deny", "expect", "must_use"];
        let attrs = item.attrs.iter().filter(|attr| names.iter().any(|name| attr.path().is_ident(name)));
        let (vis, statements) = (&item.vis, &item.block.stmts);
        let uses = function.named_in_options().map(Argument::use_in_body);
        let body = quote! {
            #[doc = #about]
            #(#attrs)*
            #[allow(unreachable_pub, reason = "the protected function is as visible, and has the warning")]
            #vis #sig { #(#uses)* #(#statements)* }
        };
        let Self::InType = self else { return Some(body) };
        let conditions: Vec<_> = item.attrs.iter().filter(|attr| attr.path().is_ident("cfg")).collect();
        let about =
            format!("Holds the [unprotected form](Self::unprotected) of [`{0}`](fn@{0}).", protected.unraw());
        Some(quote! {
            #(#conditions)*
            #[doc = #about]
            #[allow(non_camel_case_types, unreachable_pub, reason = "it has the name of the function")]
            #vis enum #protected {}

            #(#conditions)*
            impl #protected { #body }
        })
    }
}
