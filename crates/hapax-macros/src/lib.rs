//! The attribute `#[hapax::idempotent]`. Use it through the crate `hapax`, feature `macros`.
//!
//! `attr` reads the options, `expand` writes the function. The generated code uses `::hapax` paths; this crate depends on
//! no other crate of the workspace.

mod attr;
mod expand;

use proc_macro::TokenStream;

#[doc = include_str!("idempotent.md")]
#[proc_macro_attribute]
pub fn idempotent(options: TokenStream, item: TokenStream) -> TokenStream {
    expand::attribute(options.into(), item.into()).into()
}
