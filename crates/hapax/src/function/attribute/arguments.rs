//! The arguments of a call, serialised as one JSON object with their names.

use serde::ser::{Serialize, SerializeMap, Serializer};

/// An argument that counts for the fingerprint.
#[diagnostic::on_unimplemented(
    message = "the argument of type `{Self}` cannot be part of the fingerprint",
    label = "is not `serde::Serialize`",
    note = "derive `serde::Serialize`, or leave the argument out: `#[idempotent(skip(argument))]`"
)]
pub trait Input: Serialize {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + ?Sized> Input for T {}

/// A list of arguments.
pub trait Arguments {
    /// How many there are.
    const COUNT: usize;

    /// Appends them to an object.
    ///
    /// # Errors
    /// When one has no JSON form.
    fn append<M: SerializeMap>(&self, object: &mut M) -> Result<(), M::Error>;
}

/// The end of the list.
pub struct NoArguments;

/// An argument and those after it.
pub struct Argument<'a, T: ?Sized, Rest> {
    name: &'static str,
    value: &'a T,
    rest: Rest,
}

/// Puts an argument before others.
pub fn argument<'a, T: Input + ?Sized, Rest>(
    name: &'static str,
    value: &'a T,
    rest: Rest,
) -> Argument<'a, T, Rest> {
    Argument { name, value, rest }
}

impl Arguments for NoArguments {
    const COUNT: usize = 0;

    fn append<M: SerializeMap>(&self, _object: &mut M) -> Result<(), M::Error> {
        Ok(())
    }
}

impl<T: Serialize + ?Sized, Rest: Arguments> Arguments for Argument<'_, T, Rest> {
    const COUNT: usize = 1 + Rest::COUNT;

    fn append<M: SerializeMap>(&self, object: &mut M) -> Result<(), M::Error> {
        object.serialize_entry(self.name, self.value)?;
        self.rest.append(object)
    }
}

/// The list as an object.
pub(super) struct Named<'a, A>(pub(super) &'a A);

impl<A: Arguments> Serialize for Named<'_, A> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(A::COUNT))?;
        self.0.append(&mut object)?;
        object.end()
    }
}
