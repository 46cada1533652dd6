//! The receiver: how it is kept, and the replacement of `self` in a body that runs in an async block.

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Error, ExprPath, Ident, Item, Macro, Path, ReceiverKind, Result};

use super::argument::Passing;

/// The receiver of a method.
pub(super) struct Receiver {
    pub(super) in_signature: syn::Receiver,
    passing: Passing,
    is_mutable: bool,
    span: Span,
}

impl Receiver {
    pub(super) fn of(written: &syn::Receiver) -> Result<Self> {
        let passing = match &written.kind {
            ReceiverKind::Value => Passing::Value,
            ReceiverKind::Reference(_, _, Some(mutability)) => {
                let message = "the execution may outlive its caller, so it cannot change what the caller holds: take `&self` \
                               and share the state in an `Arc<Mutex<_>>`, or take `self`";
                return Err(Error::new(mutability.span(), message));
            }
            ReceiverKind::Reference(_, lifetime, None) if super::borrowed::is_static(lifetime.as_ref()) => {
                Passing::Value
            }
            ReceiverKind::Reference(..) => Passing::Reference,
            ReceiverKind::Typed(_, ty) => Passing::of(ty)?,
            _ => {
                return Err(Error::new(
                    written.self_token.span(),
                    "this receiver is not supported: take `&self`",
                ));
            }
        };
        let in_signature = syn::Receiver { mutability: None, attrs: Vec::new(), ..written.clone() };
        Ok(Self {
            in_signature,
            passing,
            is_mutable: written.mutability.is_some(),
            span: written.self_token.span(),
        })
    }

    /// Its name in the execution.
    fn kept() -> Ident {
        Ident::new("__hapax_self", Span::mixed_site())
    }

    /// The statement that keeps it.
    pub(super) fn keep(&self, hapax: &Path) -> TokenStream {
        let itself = quote_spanned!(self.span=> self);
        self.passing.keep(&itself, &Self::kept(), hapax, self.span)
    }

    /// The expression of what a method gets.
    pub(super) fn lent(&self, hapax: &Path) -> TokenStream {
        self.passing.lent(&Self::kept(), hapax)
    }

    /// The statement that names what a body gets, after `self` was replaced in it.
    pub(super) fn bind(&self, hapax: &Path) -> TokenStream {
        let (kept, lent) = (Self::kept(), self.lent(hapax));
        let mutability = self.is_mutable.then(|| quote!(mut));
        quote!(let #mutability #kept = #lent;)
    }
}

/// Replaces `self` in the block by the name of the kept receiver.
pub(super) fn replace_self(block: &mut Block) -> Result<()> {
    let mut replace = Replace(Ok(()));
    replace.visit_block_mut(block);
    replace.0
}

struct Replace(Result<()>);

impl VisitMut for Replace {
    fn visit_expr_path_mut(&mut self, path: &mut ExprPath) {
        if path.qself.is_none() && path.path.is_ident("self") {
            path.path = Path::from(kept_at(path.path.span()));
        }
        visit_mut::visit_expr_path_mut(self, path);
    }

    fn visit_macro_mut(&mut self, called: &mut Macro) {
        match in_macro(called.tokens.clone()) {
            Ok(tokens) => called.tokens = tokens,
            Err(error) => self.0 = Err(error),
        }
    }

    // An item has a `self` of its own.
    fn visit_item_mut(&mut self, _item: &mut Item) {}
}

fn kept_at(span: Span) -> Ident {
    Ident::new("__hapax_self", Span::mixed_site().located_at(span))
}

/// The same in the arguments of a macro, where `self::` begins a path.
fn in_macro(tokens: TokenStream) -> Result<TokenStream> {
    let mut tokens = tokens.into_iter().peekable();
    let mut replaced = Vec::new();
    while let Some(token) = tokens.next() {
        replaced.push(match token {
            TokenTree::Ident(ident) if ident == "self" => {
                let is_path = matches!(tokens.peek(), Some(TokenTree::Punct(next)) if is_double_colon(next));
                TokenTree::Ident(if is_path { ident } else { kept_at(ident.span()) })
            }
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), in_macro(group.stream())?);
                inner.set_span(group.span());
                TokenTree::Group(inner)
            }
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                if text.contains("{self}") || text.contains("{self:") {
                    let message = "`self` inside of a string cannot be replaced: pass it as an argument of the macro, such as \
                                   `format!(\"{}\", self)`";
                    return Err(Error::new(literal.span(), message));
                }
                TokenTree::Literal(literal)
            }
            other => other,
        });
    }
    Ok(replaced.into_iter().collect())
}

/// `a ? self : b` has a single colon, with another spacing.
fn is_double_colon(punct: &proc_macro2::Punct) -> bool {
    punct.as_char() == ':' && punct.spacing() == proc_macro2::Spacing::Joint
}
