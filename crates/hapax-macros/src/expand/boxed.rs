//! The form in which `#[async_trait]` passes a method on: `fn … -> Pin<Box<dyn Future<Output = R>>> { Box::pin(async move
//! { … }) }`.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::visit_mut::VisitMut;
use syn::{AssocType, Block, Error, Expr, ItemFn, Local, Pat, Result, ReturnType, Stmt, Type, parse_quote};

use super::argument::Argument;

/// A function of this form.
pub(super) struct Boxed<'a> {
    block: &'a Block,
    returned: &'a ReturnType,
    /// The output of the future.
    pub(super) written: &'a Type,
    /// The content of the async block.
    content: &'a Block,
}

impl<'a> Boxed<'a> {
    pub(super) fn of(item: &'a ItemFn) -> Option<Self> {
        if item.sig.asyncness.is_some() {
            return None;
        }
        let written = Output::of(&item.sig.output)?;
        let Stmt::Expr(Expr::Call(call), None) = item.block.stmts.last()? else { return None };
        let Expr::Path(called) = &*call.func else { return None };
        let names: Vec<String> =
            called.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if !names.ends_with(&["Box".to_owned(), "pin".to_owned()]) {
            return None;
        }
        let Expr::Async(body) = call.args.first()? else { return None };
        let content = body.capture.is_some().then_some(&body.block)?;
        Some(Self { block: &item.block, returned: &item.sig.output, written, content })
    }

    /// Refuses statements outside of the async block: they would run on every call, also of a recorded operation.
    pub(super) fn check(&self) -> Result<()> {
        let before = self.block.stmts.iter().rev().skip(1).rev();
        let message =
            "this runs on every call, also when the result is replayed: move it into the `async` block";
        let mut statements = before.filter(|stmt| !matches!(stmt, Stmt::Item(_)));
        statements.next().map_or(Ok(()), |stmt| Err(Error::new(stmt.span(), message)))
    }

    /// The content of the async block, in which these arguments count as used after they were moved into it.
    pub(super) fn content<'b>(&self, used: impl Iterator<Item = &'b Argument>) -> Block {
        let mut content = self.content.clone();
        for argument in used {
            let moves = |stmt: &Stmt| matches!(stmt, Stmt::Local(Local { pat: Pat::Ident(pat), .. }) if pat.ident == argument.ident);
            if let Some(at) = content.stmts.iter().position(moves) {
                let used = argument.use_in_body();
                content.stmts.insert(at + 1, parse_quote!(#used));
            }
        }
        content
    }

    /// The return type, with another output of the future.
    pub(super) fn output(&self, output: &TokenStream) -> ReturnType {
        let mut returned = self.returned.clone();
        SetOutput(output).visit_return_type_mut(&mut returned);
        returned
    }

    /// The body, with another content of the async block.
    pub(super) fn block(&self, content: &TokenStream) -> TokenStream {
        let mut block = self.block.clone();
        if let Some(Stmt::Expr(Expr::Call(call), None)) = block.stmts.last_mut()
            && let Some(body) = call.args.first_mut()
        {
            *body = parse_quote!(async move { #content });
        }
        block.into_token_stream()
    }
}

/// Finds `Output = R`.
struct Output<'a>(Option<&'a Type>);

impl<'a> Output<'a> {
    fn of(returned: &'a ReturnType) -> Option<&'a Type> {
        let ReturnType::Type(_, ty) = returned else { return None };
        let Type::Path(pin) = &**ty else { return None };
        if pin.path.segments.last()?.ident != "Pin" {
            return None;
        }
        let mut search = Self(None);
        search.visit_type(ty);
        search.0
    }
}

impl<'a> Visit<'a> for Output<'a> {
    fn visit_assoc_type(&mut self, bound: &'a AssocType) {
        if bound.ident == "Output" {
            self.0.get_or_insert(&bound.ty);
        }
        visit::visit_assoc_type(self, bound);
    }
}

struct SetOutput<'a>(&'a TokenStream);

impl VisitMut for SetOutput<'_> {
    fn visit_assoc_type_mut(&mut self, bound: &mut AssocType) {
        if bound.ident == "Output" {
            let output = self.0;
            bound.ty = parse_quote!(#output);
        }
    }
}
