//! The code of the protected function: make the call, keep the arguments, run.

use std::time::Duration;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Error, GenericParam, Ident, Index, Result};

use super::Function;
use super::argument::at;
use super::body::Body;
use crate::attr::{Member, Piece, Template};

/// The statements and the final expression of the protected function.
pub(super) fn run(function: &Function<'_>, body: &Body) -> Result<TokenStream> {
    let Function { options, hapax, receiver, arguments, returned, .. } = function;
    let call = call(function)?;
    let kept = receiver.as_ref().map(|receiver| receiver.keep(hapax));
    let kept = kept.into_iter().chain(arguments.iter().map(|argument| argument.keep(hapax)));
    let work = work(function, body);
    let is_generic = function
        .item
        .sig
        .generics
        .params
        .iter()
        .any(|parameter| !matches!(parameter, GenericParam::Lifetime(_)))
        || function.is_in_impl();
    let check = returned.check_alias(is_generic, hapax);
    let context = options.context.as_ref().map_or_else(|| quote!(_), ToTokens::to_token_stream);
    // Errors about the type of the result point to it.
    let run = Ident::new("run", returned.span);
    let operation = Ident::new("operation", Span::mixed_site());
    let ran = quote!(#operation.#run(move |#context| #work).await);
    let result = match &options.map_err {
        Some(map_err) => quote!(::core::result::Result::map_err(#ran, #map_err)),
        None => ran,
    };
    Ok(quote! {
        #check
        let #operation = #call;
        #(#kept)*
        #result
    })
}

/// Borrows the arguments, and holds no borrow afterwards.
fn call(function: &Function<'_>) -> Result<TokenStream> {
    let Function { options, hapax, item, .. } = function;
    let (bind_engine, engine) = match &options.engine {
        Some(engine) => {
            let bound = Ident::new("engine", Span::mixed_site());
            let bind = quote_spanned!(engine.span()=> let #bound: &#hapax::Hapax = &#engine;);
            (bind, quote!(::core::option::Option::Some(#bound)))
        }
        None => (quote!(), quote!(::core::option::Option::None)),
    };
    let scope = match &options.scope {
        Some(scope) => quote!(#scope),
        None => {
            let name = item.sig.ident.unraw().to_string();
            quote!(::core::concat!(::core::module_path!(), "::", #name))
        }
    };
    let (key, printed) = match &options.key {
        Some(template) => {
            let KeyText { text, printed } = KeyText::of(function, template)?;
            (quote!(::core::option::Option::Some(#text)), printed)
        }
        None => (quote!(::core::option::Option::None), Vec::new()),
    };
    let bind_printed = printed.iter().map(|Printed { bound, value, .. }| quote!(let #bound = #value;));
    let arguments = printed.iter().fold(quote!(#hapax::__macros::NoArguments), |rest, printed| {
        let Printed { name, bound, .. } = printed;
        quote!(#hapax::__macros::argument(#name, &#bound, #rest))
    });
    let arguments = function.counted().rfold(arguments, |rest, argument| {
        let (name, value, span) = (&argument.name, argument.borrowed(), argument.ty.span());
        let hapax = at(span, hapax);
        quote_spanned!(span=> #hapax::__macros::argument(#name, #value, #rest))
    });
    let arguments = item.sig.generics.const_params().fold(arguments, |rest, parameter| {
        let ident = &parameter.ident;
        let name = ident.unraw().to_string();
        quote!(#hapax::__macros::argument(#name, &#ident, #rest))
    });
    let settings = settings(function);
    let settings = (!settings.is_empty()).then(|| quote!(.with(|once| once #(#settings)*)));
    Ok(quote! {{
        #bind_engine
        #(#bind_printed)*
        #hapax::__macros::call(#engine, #scope, #key, &#arguments) #settings
    }})
}

/// The options that are those of `Once`.
fn settings(function: &Function<'_>) -> Vec<TokenStream> {
    let Function { options, hapax, .. } = function;
    let durations = [
        ("retention", options.retention),
        ("lease", options.lease),
        ("wait", options.wait),
        ("deadline", options.deadline),
    ];
    let of_time = durations.into_iter().filter_map(|(name, duration)| Some((name, duration?)));
    let mut settings: Vec<TokenStream> = of_time.map(|(name, duration)| setting(name, duration)).collect();
    settings.extend(options.on_lapse.map(|variant| {
        let variant = Ident::new(variant, Span::call_site());
        quote!(.on_lapse(#hapax::OnLapse::#variant))
    }));
    settings
}

fn setting(name: &str, duration: Duration) -> TokenStream {
    let name = Ident::new(name, Span::call_site());
    let (secs, nanos) = (duration.as_secs(), duration.subsec_nanos());
    quote!(.#name(::core::time::Duration::new(#secs, #nanos)))
}

/// The text of the key, and what it reads from outside of the input.
struct KeyText {
    text: TokenStream,
    printed: Vec<Printed>,
}

/// A placeholder that reads `self` or an argument that does not count. Texts of several placeholders may join to the same
/// key, so it is a member of the input.
struct Printed {
    /// As in the template.
    name: String,
    bound: Ident,
    value: TokenStream,
}

impl KeyText {
    fn of(function: &Function<'_>, template: &Template) -> Result<Self> {
        let mut format = String::new();
        let mut values = Vec::new();
        let mut printed: Vec<Printed> = Vec::new();
        let span = template.literal.span();
        for piece in &template.pieces {
            let (root, members) = match piece {
                Piece::Text(text) => {
                    format.push_str(&text.replace('{', "{{").replace('}', "}}"));
                    continue;
                }
                Piece::Value { root, members } => (root, members),
            };
            format.push_str("{}");
            let is_input = function.counted().any(|argument| argument.is_named(root));
            let value = place(&self::root(function, root)?, members);
            if is_input {
                values.push(value);
                continue;
            }
            let name = name(root, members);
            let known = printed.iter().find(|printed| printed.name == name).map(|known| known.bound.clone());
            let bound = known.unwrap_or_else(|| {
                let bound = format_ident!("printed_{}", printed.len(), span = Span::mixed_site());
                printed.push(Printed {
                    name,
                    bound: bound.clone(),
                    value: quote_spanned!(span=> ::std::format!("{}", #value)),
                });
                bound
            });
            values.push(quote!(#bound));
        }
        let format = syn::LitStr::new(&format, span);
        Ok(Self { text: quote_spanned!(span=> ::std::format!(#format, #(#values),*)), printed })
    }
}

fn root(function: &Function<'_>, root: &Ident) -> Result<TokenStream> {
    if root != "self" {
        return Ok(at(root.span(), &function.argument(root)?.ident));
    }
    if function.receiver.is_none() {
        return Err(Error::new(root.span(), "the key names `self`, but the function has no receiver"));
    }
    Ok(quote!(#root))
}

/// The placeholder as text.
fn name(root: &Ident, members: &[Member]) -> String {
    let members = members.iter().map(|member| match member {
        Member::Named(name) => format!(".{}", name.unraw()),
        Member::Numbered(index) => format!(".{index}"),
    });
    root.unraw().to_string() + &members.collect::<String>()
}

fn place(root: &TokenStream, members: &[Member]) -> TokenStream {
    let members = members.iter().map(|member| match member {
        Member::Named(name) => name.to_token_stream(),
        Member::Numbered(index) => Index { index: *index, span: root.span() }.to_token_stream(),
    });
    quote!(#root #(.#members)*)
}

/// The async block that executes the body.
fn work(function: &Function<'_>, body: &Body) -> TokenStream {
    let Function { options, hapax, receiver, arguments, returned, .. } = function;
    let wrapper = returned.wrapper(options, hapax);
    if let (Some(path), Body::InType | Body::Beside { .. }) = (body.path(function), body) {
        let lent = receiver.as_ref().map(|receiver| receiver.lent(hapax)).into_iter();
        let context = options.context.as_ref().map(ToTokens::to_token_stream);
        let lent = lent.chain(context).chain(arguments.iter().map(|argument| argument.lent(hapax)));
        let value = quote!(#path(#(#lent),*).await);
        return match wrapper {
            Some(wrapper) => quote!(async move { #wrapper(#value) }),
            None => quote!(async move { #value }),
        };
    }
    let Body::Inline(block) = body else { return quote!() };
    let bound = receiver.as_ref().map(|receiver| receiver.bind(hapax));
    let bound = bound.into_iter().chain(arguments.iter().map(|argument| {
        let (pattern, lent) = (&argument.pattern, argument.lent(hapax));
        quote!(let #pattern = #lent;)
    }));
    let bound = bound.chain(function.named_in_options().map(super::Argument::use_in_body));
    let (written, statements) = (&returned.written, &block.stmts);
    let run = quote! {
        async move {
            #(#bound)*
            // Gives the block its type, for `?` and `return`.
            if false {
                return #hapax::__macros::never_returned::<#written>();
            }
            #(#statements)*
        }
    };
    match wrapper {
        Some(wrapper) => quote!(async move { #wrapper(#run.await) }),
        None => run,
    }
}
