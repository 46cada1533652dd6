//! [`Codec`]: how results become bytes.

use hapax_core::Format;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// An error of any type.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How results of the type `T` are recorded: [`Json`], or an own form for types without serde, such as messages of
/// protocol buffers.
pub trait Codec<T>: Send + Sync + 'static {
    /// The format under which results are recorded. Own formats have numbers from 128 on; one of the smaller numbers, which
    /// are Hapax's, does not compile where the codec is used. A record of another format is refused as not available.
    const FORMAT: Format;

    /// The value as bytes.
    ///
    /// # Errors
    /// When the value cannot be written. The work has run then: the record says so, without its result.
    fn encode(&self, value: &T) -> Result<Vec<u8>, BoxError>;

    /// The value of these bytes.
    ///
    /// # Errors
    /// When the bytes are no value of this type. Nothing runs then.
    fn decode(&self, bytes: &[u8]) -> Result<T, BoxError>;
}

/// The format of a codec, checked where the codec is used: a number of Hapax's own formats gives its records another
/// meaning.
///
/// ```compile_fail,E0080
/// use hapax::core::Format;
/// use hapax::{Codec, Hapax, MemoryStore};
///
/// struct Text;
/// impl Codec<String> for Text {
///     const FORMAT: Format = Format(2); // HTTP
///     fn encode(&self, value: &String) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
///         Ok(value.clone().into_bytes())
///     }
///     fn decode(&self, bytes: &[u8]) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
///         Ok(String::from_utf8(bytes.to_vec())?)
///     }
/// }
/// let hapax = Hapax::new(MemoryStore::new());
/// drop(hapax.once("a", "b").run_with(Text, |_| async { Ok::<_, String>(String::new()) }));
/// ```
pub(crate) const fn format_of<T, C: Codec<T>>() -> Format {
    const {
        assert!(
            C::FORMAT.0 == Format::FUNCTION.0 || C::FORMAT.0 >= 128,
            "the numbers below 128 are Hapax's own formats"
        )
    };
    C::FORMAT
}

/// Results as JSON. [`Once::run`](crate::Once::run) uses it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Json;

impl<T: Serialize + DeserializeOwned> Codec<T> for Json {
    const FORMAT: Format = Format::FUNCTION;

    fn encode(&self, value: &T) -> Result<Vec<u8>, BoxError> {
        Ok(serde_json::to_vec(value)?)
    }

    fn decode(&self, bytes: &[u8]) -> Result<T, BoxError> {
        Ok(serde_json::from_slice(bytes)?)
    }
}
