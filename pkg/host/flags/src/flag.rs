//! [`Flag`]: a flag that this program reads, its declaration and its type in one constant.
//! [`Values`]: the effective value of every declared flag.
//!
//! A [`Flag`] is declared next to its table ([`Flag::spec`]) and given to [`Values::get`], so
//! that a name, a default or a type is written once and cannot be mistaken where it is read.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::net::{IpAddr, Ipv4Addr};

use crate::{
    FlagSupport, GateSetting, GoDuration, Kind, NamedCertKey, Problem, Spec, Value, VersionRequest,
};

/// A declared flag whose value is read as `T`.
pub struct Flag<T> {
    spec: Spec,
    value: PhantomData<fn() -> T>,
}

impl<T> Flag<T> {
    const fn new(
        kind: Kind,
        group: &'static str,
        name: &'static str,
        default: &'static str,
        help: &'static str,
    ) -> Self {
        Self { spec: Spec::honoured(group, name, kind, default, help), value: PhantomData }
    }

    /// The declaration, for the table of flags.
    pub const fn spec(&self) -> Spec {
        self.spec
    }

    /// Name without dashes in front.
    pub const fn name(&self) -> &'static str {
        self.spec.name
    }

    /// This flag with another support.
    #[must_use]
    pub const fn with_support(self, support: FlagSupport) -> Self {
        Self::of_spec(self.spec.with_support(support))
    }

    const fn of_spec(spec: Spec) -> Self {
        Self { spec, value: PhantomData }
    }

    /// A rule that the flag's value breaks.
    pub fn problem(&self, message: impl Into<String>) -> Problem {
        Problem::new(self.name(), message)
    }
}

/// The name on the command line.
impl<T> fmt::Display for Flag<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--{}", self.name())
    }
}

/// A type that values of flags are read as.
pub trait FlagValue: Sized {
    /// The contents of a value of this shape; `None` for another shape.
    fn of(value: &Value) -> Option<Self>;

    /// The value of an unset flag of this type. Reached only when a default breaks its own syntax,
    /// which the reading of the tables refuses.
    fn unset() -> Self;
}

/// Implements [`FlagValue`] for the contents of one shape.
macro_rules! flag_values {
    ($($shape:ident: $type:ty = $unset:expr;)*) => {$(
        impl FlagValue for $type {
            fn of(value: &Value) -> Option<Self> {
                match value {
                    Value::$shape(contents) => Some(contents.clone()),
                    _ => None,
                }
            }

            fn unset() -> Self {
                $unset
            }
        }
    )*};
}

flag_values! {
    Bool: bool = false;
    Int: i64 = 0;
    Float: f64 = 0.0;
    Text: String = String::new();
    Duration: GoDuration = GoDuration::default();
    Ip: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    Strings: Vec<String> = Vec::new();
    Map: Vec<(String, String)> = Vec::new();
    Ints: Vec<i64> = Vec::new();
    Gates: Vec<GateSetting> = Vec::new();
    CertKeys: Vec<NamedCertKey> = Vec::new();
    Levels: Vec<(String, u8)> = Vec::new();
    Version: VersionRequest = VersionRequest::default();
}

/// Constructors by kind, each with the type that its values are read as.
macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident: $kind:ident => $type:ty;)*) => {$(
        impl Flag<$type> {
            $(#[$doc])*
            pub const fn $name(
                group: &'static str,
                name: &'static str,
                default: &'static str,
                help: &'static str,
            ) -> Self {
                Self::new(Kind::$kind, group, name, default, help)
            }
        }
    )*};
}

constructors! {
    /// A [`Kind::Bool`].
    bool: Bool => bool;
    /// A [`Kind::Int`].
    int: Int => i64;
    /// A [`Kind::Int32`].
    int32: Int32 => i64;
    /// A [`Kind::Quantity`], in bytes.
    quantity: Quantity => i64;
    /// A [`Kind::Verbosity`].
    verbosity: Verbosity => i64;
    /// A [`Kind::Float32`].
    float32: Float32 => f64;
    /// A [`Kind::String`].
    string: String => String;
    /// A [`Kind::CidrList`], as one text.
    cidr_list: CidrList => String;
    /// A [`Kind::Duration`], with its sign.
    duration: Duration => GoDuration;
    /// A [`Kind::Ip`]; unspecified means all addresses.
    ip: Ip => IpAddr;
    /// A [`Kind::Strings`].
    strings: Strings => Vec<String>;
    /// A [`Kind::StringMap`]: keys with their values, no key twice.
    string_map: StringMap => Vec<(String, String)>;
    /// A [`Kind::Int32Slice`].
    int32_slice: Int32Slice => Vec<i64>;
    /// A [`Kind::NamedCertKeys`].
    cert_keys: NamedCertKeys => Vec<NamedCertKey>;
    /// A [`Kind::FeatureGates`]: those that the user set.
    feature_gates: FeatureGates => Vec<GateSetting>;
    /// A [`Kind::VModule`]: patterns with their levels.
    vmodule: VModule => Vec<(String, u8)>;
    /// A [`Kind::Version`].
    version: Version => VersionRequest;
}

/// Declares the flags of one help section: each as a constant of type [`Flag`], then their table. The
/// table also has the flags behind `with`, which are declared elsewhere.
///
/// ```
/// flags::declare! {
///     /// All flags of the sample.
///     pub SAMPLE in "sample";
///
///     /// The only one.
///     WIDGETS: i64 = int32("widgets", "5") "Widgets that are made at once.";
/// }
/// assert_eq!((SAMPLE.len(), WIDGETS.name()), (1, "widgets"));
/// ```
#[macro_export]
macro_rules! declare {
    (
        $(#[$of_table:meta])*
        $vis:vis $table:ident in $group:expr $(, with $other:ident)*;
        $(
            $(#[$of_flag:meta])*
            $flag:ident: $type:ty = $kind:ident($name:literal, $default:expr) $help:literal;
        )+
    ) => {
        $(
            $(#[$of_flag])*
            $vis const $flag: $crate::Flag<$type> =
                $crate::Flag::$kind($group, $name, $default, $help);
        )+
        $(#[$of_table])*
        $vis const $table: &[$crate::Spec] = &[$($flag.spec()),+ $(, $other.spec())*];
    };
}

struct Entry {
    spec: &'static Spec,
    value: Value,
    explicit: bool,
}

/// All flags with defaults filled in.
pub struct Values {
    entries: BTreeMap<&'static str, Entry>,
}

impl Values {
    /// Reads the occurrences of flags in command-line order: the last scalar wins, the first list
    /// occurrence replaces the default and later ones append.
    pub fn from_given<N, T>(
        specs: impl IntoIterator<Item = &'static Spec>,
        given: impl IntoIterator<Item = (N, T)>,
    ) -> Result<Self, Problem>
    where
        N: AsRef<str>,
        T: AsRef<str>,
    {
        let mut entries = BTreeMap::new();
        for spec in specs {
            let value = read(spec, spec.default)?;
            entries.insert(spec.name, Entry { spec, value, explicit: false });
        }
        for (name, text) in given {
            let name = name.as_ref();
            let entry = entries.get_mut(name).ok_or_else(|| Problem::new(name, "unknown flag"))?;
            let later = read(entry.spec, text.as_ref())?;
            if std::mem::replace(&mut entry.explicit, true) {
                entry.value.follow_with(later);
            } else {
                entry.value = later;
            }
        }
        Ok(Self { entries })
    }

    /// The value of a flag. One that stands in no table cannot be given, so its default holds.
    pub fn get<T: FlagValue>(&self, flag: &Flag<T>) -> T {
        let declared = self.entries.get(flag.name()).and_then(|entry| T::of(&entry.value));
        declared.unwrap_or_else(|| {
            let spec = flag.spec();
            let default = Value::read(spec.kind, spec.default).ok();
            default.as_ref().and_then(T::of).unwrap_or_else(T::unset)
        })
    }

    /// Whether the user gave the flag, even with its default.
    pub fn is_set(&self, name: &str) -> bool {
        self.entries.get(name).is_some_and(|entry| entry.explicit)
    }

    /// The flags that the user gave, in order of name.
    pub fn explicit(&self) -> impl Iterator<Item = &'static Spec> {
        self.entries.values().filter(|entry| entry.explicit).map(|entry| entry.spec)
    }

    /// Every flag with its effective value as text, in order of name; for the `FLAG:` lines and
    /// for `/configz`. Values are file paths and settings, never contents of secrets.
    pub fn effective(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.entries.iter().map(|(name, entry)| (*name, entry.value.to_string()))
    }
}

fn read(spec: &'static Spec, text: &str) -> Result<Value, Problem> {
    Value::read(spec.kind, text)
        .map_err(|error| Problem::new(spec.name, format!("invalid argument {text:?}: {error}")))
}

#[cfg(test)]
mod tests;
