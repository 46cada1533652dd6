//! From a function and its options to the protected function, and its unprotected form.

mod argument;
mod body;
mod borrowed;
mod boxed;
mod call;
mod receiver;
mod returned;

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{
    AttrStyle, Attribute, Error, FnArg, Ident, ItemFn, Path, Result, Safety, TraitItemFn, parse_quote,
};

use self::argument::Argument;
use self::body::Body;
use self::boxed::Boxed;
use self::receiver::Receiver;
use self::returned::Returned;
use crate::attr::{Options, Piece, Unprotected};

/// The whole attribute. After an error the function stays as it was, so that its callers cause no errors of their own.
pub(crate) fn attribute(options: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = syn::parse2(options).and_then(|options| expand(&options, &function(item.clone())?));
    expanded.unwrap_or_else(|error| {
        let errors = error.into_compile_error();
        quote!(#item #errors)
    })
}

fn function(item: TokenStream) -> Result<ItemFn> {
    let mut function = parse(item)?;
    // Those inside of the body are written before it, where its statements may be in another function.
    function.attrs.iter_mut().for_each(|attr| attr.style = AttrStyle::Outer);
    Ok(function)
}

fn parse(item: TokenStream) -> Result<ItemFn> {
    const ELSEWHERE: &str = "`#[idempotent]` belongs on an `async fn` with a body";
    let span = item.span();
    syn::parse2(item.clone()).map_err(|error| match syn::parse2::<TraitItemFn>(item) {
        Ok(declared) => Error::new(
            declared.sig.ident.span(),
            "this method has no body: write `#[idempotent]` on the method in the `impl`",
        ),
        Err(_) if error.to_string().contains("expected `fn`") => Error::new(span, ELSEWHERE),
        Err(_) => error,
    })
}

/// What is known about the function before code is generated.
struct Function<'a> {
    options: &'a Options,
    item: &'a ItemFn,
    hapax: Path,
    /// The form in which `async_trait` passes a method.
    boxed: Option<Boxed<'a>>,
    receiver: Option<Receiver>,
    arguments: Vec<Argument>,
    returned: Returned,
}

fn expand(options: &Options, item: &ItemFn) -> Result<TokenStream> {
    let function = Function::new(options, item)?;
    let body = Body::of(&function)?;
    let mut sig = item.sig.clone();
    sig.inputs = function.inputs();
    let hapax = &function.hapax;
    let run = call::run(&function, &body)?;
    let block = match &function.boxed {
        Some(boxed) => {
            sig.output = boxed.output(&function.returned.protected(options, hapax));
            boxed.block(&run)
        }
        None => {
            let output = function.returned.protected(options, hapax);
            sig.output = parse_quote!(-> #output);
            quote!({ #run })
        }
    };
    let is_elsewhere = !matches!(body, Body::Inline(_));
    let attrs = item.attrs.iter().map(|attr| protected_attribute(attr, is_elsewhere));
    let vis = &item.vis;
    let unprotected = body.item(&function);
    Ok(quote! {
        #(#attrs)* #vis #sig #block
        #unprotected
    })
}

impl<'a> Function<'a> {
    fn new(options: &'a Options, item: &'a ItemFn) -> Result<Self> {
        let sig = &item.sig;
        let boxed = Boxed::of(item);
        boxed.as_ref().map_or(Ok(()), Boxed::check)?;
        if let Some(constness) = &sig.constness {
            return Err(Error::new(
                constness.span(),
                "a `const fn` does not run at a time that could be recorded",
            ));
        }
        if let Safety::Unsafe(keyword) = &sig.safety {
            let message = "an `unsafe fn` cannot be protected: protect a safe function that calls it";
            return Err(Error::new(keyword.span(), message));
        }
        if sig.asyncness.is_none() && boxed.is_none() {
            return Err(Error::new(
                sig.fn_token.span(),
                "`#[idempotent]` needs an asynchronous function: write `async fn`",
            ));
        }
        let written = boxed
            .as_ref()
            .map_or_else(|| Returned::of(&sig.output), |boxed| Returned::of_type(boxed.written));
        let mut receiver = None;
        let mut arguments = Vec::new();
        for (number, input) in (1..).zip(&sig.inputs) {
            match input {
                FnArg::Receiver(written) => receiver = Some(Receiver::of(written)?),
                FnArg::Typed(typed) => arguments.push(Argument::of(number, typed)?),
            }
        }
        let hapax = options.hapax.clone().unwrap_or_else(|| parse_quote!(::hapax));
        let function = Self { options, item, hapax, boxed, receiver, arguments, returned: written? };
        function.check()?;
        Ok(function)
    }

    /// The rules between options and the signature.
    fn check(&self) -> Result<()> {
        self.returned.check(self.options)?;
        for skipped in &self.options.skip {
            self.argument(skipped)?;
        }
        if let Some(context) = &self.options.context
            && let Ok(argument) = self.argument(context)
        {
            return Err(Error::new(
                argument.ident.span(),
                format!("`{context}` is the name of the context, too"),
            ));
        }
        if self.options.scope.is_none() && self.is_in_impl() {
            let message = "`scope` is required in an `impl`, because the attribute does not see the name of the type and \
                           methods of two types would share their operations: write `scope = \"orders\"`";
            return Err(Error::new(Span::call_site(), message));
        }
        if self.options.scope.is_none() && matches!(self.options.unprotected, Unprotected::None) {
            let message = "`unprotected = none` needs a `scope`: the attribute cannot tell a free function from an associated \
                           one, and those of two types would share their operations: write `scope = \"orders\"`";
            return Err(Error::new(Span::call_site(), message));
        }
        if self.options.key.is_none() && self.counted().next().is_none() {
            let message = match self.receiver {
                Some(_) => {
                    "without arguments every call would be the same operation: name a field in the key, such as \
                     `key = \"{self.id}\"`, or take an argument that tells operations apart"
                }
                None => {
                    "without arguments every call would be the same operation: take one that tells operations apart, \
                     such as the number of an order"
                }
            };
            return Err(Error::new(Span::call_site(), message));
        }
        self.check_type_parameters()
    }

    /// Refuses a type that only the caller's turbofish or the result names: nothing in the input tells it apart.
    fn check_type_parameters(&self) -> Result<()> {
        let is_in_argument = |parameter: &Ident| {
            let mut types = self.arguments.iter().map(|argument| argument.ty.to_token_stream());
            types.any(|ty| mentions(ty, &|ident| ident == parameter))
        };
        let mut parameters = self.item.sig.generics.type_params();
        parameters.find(|parameter| !is_in_argument(&parameter.ident)).map_or(Ok(()), |parameter| {
            let name = &parameter.ident;
            let message = format!(
                "no argument has a type with `{name}`, so calls for two types would be the same operation and one would \
                 get the result of the other: protect a function for each type"
            );
            Err(Error::new(name.span(), message))
        })
    }

    /// The argument of this name, or an error with the names that there are.
    fn argument(&self, name: &Ident) -> Result<&Argument> {
        let found = self.arguments.iter().find(|argument| argument.is_named(name));
        found.ok_or_else(|| {
            let names: Vec<String> = self.arguments.iter().filter_map(Argument::quoted).collect();
            let there_are = match &names[..] {
                [] => "the function has no named arguments".to_owned(),
                [one] => format!("the only argument is {one}"),
                names => format!("the arguments are {}", names.join(", ")),
            };
            Error::new(name.span(), format!("no argument is named `{}`: {there_are}", name.unraw()))
        })
    }

    /// The arguments that count for the fingerprint.
    fn counted(&self) -> impl DoubleEndedIterator<Item = &Argument> {
        let engine = self.options.engine.as_ref().map(|engine| engine.to_token_stream().to_string());
        self.arguments.iter().filter(move |argument| {
            let is_skipped = self.options.skip.iter().any(|skipped| argument.is_named(skipped));
            !is_skipped && engine.as_ref().is_none_or(|engine| argument.ident != engine)
        })
    }

    /// The arguments that the key and the engine name.
    fn named_in_options(&self) -> impl Iterator<Item = &Argument> {
        let engine = self.options.engine.as_ref().map(|engine| engine.to_token_stream());
        let key = self.options.key.iter().flat_map(|key| &key.pieces);
        self.arguments.iter().filter(move |argument| {
            let is_in_key = key
                .clone()
                .any(|piece| matches!(piece, Piece::Value { root, .. } if argument.is_named(root)));
            is_in_key
                || engine.clone().is_some_and(|engine| mentions(engine, &|ident| argument.is_named(ident)))
        })
    }

    /// Whether it is certainly not a free function.
    fn is_in_impl(&self) -> bool {
        let names_self_type = || {
            let engine = self.options.engine.to_token_stream();
            [self.item.sig.to_token_stream(), self.item.block.to_token_stream(), engine]
                .into_iter()
                .any(|tokens| mentions(tokens, &|ident| ident == "Self"))
        };
        let is_beside = matches!(self.options.unprotected, Unprotected::Beside { is_associated: true, .. });
        self.receiver.is_some() || self.boxed.is_some() || is_beside || names_self_type()
    }

    fn inputs(&self) -> syn::punctuated::Punctuated<FnArg, syn::Token![,]> {
        let receiver = self.receiver.as_ref().map(|receiver| FnArg::Receiver(receiver.in_signature.clone()));
        let arguments = self.arguments.iter().map(|Argument { ident, ty, .. }| parse_quote!(#ident: #ty));
        receiver.into_iter().chain(arguments).collect()
    }
}

fn mentions(tokens: TokenStream, wanted: &impl Fn(&Ident) -> bool) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => wanted(&ident),
        TokenTree::Group(group) => mentions(group.stream(), wanted),
        _ => false,
    })
}

/// An expectation about the body cannot be met by a function without it.
fn protected_attribute(attr: &Attribute, is_body_elsewhere: bool) -> TokenStream {
    if let (true, Ok(list)) = (is_body_elsewhere && attr.path().is_ident("expect"), attr.meta.require_list())
    {
        let lints = &list.tokens;
        return quote!(#[allow(#lints)]);
    }
    attr.to_token_stream()
}
