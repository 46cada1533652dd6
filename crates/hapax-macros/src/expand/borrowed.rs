//! Finds borrowed types: an execution outlives its caller, so it cannot keep them.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Error, Lifetime, ParenthesizedGenericArguments, Result, Type, TypeFnPtr, TypePath, TypeReference};

pub(super) fn is_static(lifetime: Option<&Lifetime>) -> bool {
    lifetime.is_some_and(|lifetime| lifetime.ident == "static")
}

/// Refuses an argument with a borrow inside.
pub(super) fn refuse_in_argument(ty: &Type) -> Result<()> {
    let message = "the execution may outlive its caller, so it cannot keep this borrow: take an owned type, such as `String` \
                   for `&str` or `Vec<T>` for `&[T]`; only a reference to an owned type is cloned by itself";
    first_in(ty).map_or(Ok(()), |span| Err(Error::new(span, message)))
}

/// Refuses a borrowed return value.
pub(super) fn refuse_in_return(ty: &Type) -> Result<()> {
    let message = "the result is recorded and replayed, so it cannot be borrowed: return an owned type, such as `String` for \
                   `&str`";
    first_in(ty).map_or(Ok(()), |span| Err(Error::new(span, message)))
}

/// The lifetime of a `Cow` itself does not matter.
pub(super) fn refuse_in_cow(path: &TypePath) -> Result<()> {
    let last = path.path.segments.last().map(|segment| &segment.arguments);
    let Some(syn::PathArguments::AngleBracketed(list)) = last else { return Ok(()) };
    let types = list.args.iter().filter_map(|argument| match argument {
        syn::GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    types.into_iter().try_for_each(refuse_in_argument)
}

/// The place of the first borrow.
fn first_in(ty: &Type) -> Option<Span> {
    let mut search = Search(None);
    search.visit_type(ty);
    search.0
}

struct Search(Option<Span>);

impl<'ast> Visit<'ast> for Search {
    fn visit_lifetime(&mut self, lifetime: &'ast Lifetime) {
        if !is_static(Some(lifetime)) {
            self.0.get_or_insert(lifetime.span());
        }
    }

    fn visit_type_reference(&mut self, reference: &'ast TypeReference) {
        if reference.lifetime.is_none() {
            self.0.get_or_insert(reference.and_token.span());
        }
        visit::visit_type_reference(self, reference);
    }

    // The lifetimes of its arguments are those of each call.
    fn visit_type_fn_ptr(&mut self, _pointer: &'ast TypeFnPtr) {}
    fn visit_parenthesized_generic_arguments(&mut self, _arguments: &'ast ParenthesizedGenericArguments) {}
    fn visit_bound_lifetimes(&mut self, _bound: &'ast syn::BoundLifetimes) {}
}
