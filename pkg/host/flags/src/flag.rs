//! A flag that this program reads: its declaration and its type in one constant.
//!
//! Declared next to its table ([`Flag::spec`]) and given to [`crate::Values::get`], so
//! that a name, a default or a type is written once and cannot be mistaken where it is read.

use std::fmt;
use std::marker::PhantomData;
use std::net::{IpAddr, Ipv4Addr};

use crate::{Gate, GoDuration, NamedCertKey, Value, VersionRequest};

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

    /// This flag with another verdict.
    #[must_use]
    pub const fn with_verdict(self, verdict: Verdict) -> Self {
        Self::of_spec(self.spec.with_verdict(verdict))
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
    Gates: Vec<Gate> = Vec::new();
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
    feature_gates: FeatureGates => Vec<Gate>;
    /// A [`Kind::VModule`]: patterns with their levels.
    vmodule: VModule => Vec<(String, u8)>;
    /// A [`Kind::Version`].
    version: Version => VersionRequest;
}

/// The syntax of a flag's value; [`crate::Value::read`] gives it meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `--f`, `--f=true`, `--f=false`. Takes no separate argument.
    Bool,
    /// 64-bit whole number, Go notation (`0x10`, `0b1`, `1_000`).
    Int,
    /// 32-bit whole number, same notation.
    Int32,
    /// Decimal number.
    Float,
    /// Decimal number that a 32-bit float can hold.
    Float32,
    /// Any text.
    String,
    /// One text of comma-separated CIDRs; unlike a list, a repetition replaces it.
    CidrList,
    /// Go duration, `1h30m`.
    Duration,
    /// IP address; blank stands for all addresses.
    Ip,
    /// CSV list; the first occurrence replaces the default, later ones append.
    Strings,
    /// Comma-separated 32-bit numbers, repeatable like [`Kind::Strings`].
    Int32Slice,
    /// `key=value,…` with CSV quoting, repeatable like [`Kind::Strings`].
    StringMap,
    /// `[component:]Gate=bool,…`, repeatable; later settings of a gate win.
    FeatureGates,
    /// `cert,key[:pattern,…]`, one pair per occurrence.
    NamedCertKeys,
    /// List of `[kube=]MAJOR.MINOR`.
    ComponentVersions,
    /// Byte count such as `64Ki`.
    Quantity,
    /// Log level: a whole number from 0.
    Verbosity,
    /// `pattern=N,…`.
    VModule,
    /// `--version`, `--version=raw`, `--version=vX.Y.Z…`. Takes no separate argument.
    Version,
}

impl Kind {
    /// The type as help shows it; empty for switches.
    pub const fn type_name(self) -> &'static str {
        match self {
            Kind::Bool => "",
            Kind::Int => "int",
            Kind::Int32 => "int32",
            Kind::Float => "float",
            Kind::Float32 => "float32",
            Kind::String | Kind::CidrList => "string",
            Kind::Duration => "duration",
            Kind::Ip => "ip",
            Kind::Strings | Kind::ComponentVersions => "strings",
            Kind::Int32Slice => "int32Slice",
            Kind::StringMap => "stringToString",
            Kind::FeatureGates => "[component:]gate=bool,...",
            Kind::NamedCertKeys => "namedCertKey",
            Kind::Quantity => "quantity",
            Kind::Verbosity => "level",
            Kind::VModule => "pattern=N,...",
            Kind::Version => "version[=true]",
        }
    }

    /// What a flag given without a value means; `None` when the value is required and the next
    /// argument supplies it.
    pub const fn bare_value(self) -> Option<&'static str> {
        match self {
            Kind::Bool | Kind::Version => Some("true"),
            _ => None,
        }
    }
}

/// The effect of a flag on the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Implemented.
    Honoured,
    /// Belongs to a controller or platform that is not hosted here: read, type-checked, and named
    /// in the start-up warning when it was set explicitly.
    Accepted,
    /// Accepted and on its way out upstream: hidden from help, warned about with this text.
    Deprecated(&'static str),
}

/// One flag. All parts are plain text so that tables of them are constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Name without dashes in front, words joined by `-`.
    pub name: &'static str,
    /// Help section, lower case; the heading is `<Group> flags:`.
    pub group: &'static str,
    /// Syntax of the value.
    pub kind: Kind,
    /// Default in the syntax of `kind`.
    pub default: &'static str,
    /// Help text: full sentences, no default in it.
    pub help: &'static str,
    /// The effect of setting the flag.
    pub verdict: Verdict,
}

impl Spec {
    /// An implemented flag.
    pub const fn honoured(
        group: &'static str,
        name: &'static str,
        kind: Kind,
        default: &'static str,
        help: &'static str,
    ) -> Self {
        Self { name, group, kind, default, help, verdict: Verdict::Honoured }
    }

    /// This flag with another verdict.
    #[must_use]
    pub const fn with_verdict(self, verdict: Verdict) -> Self {
        Self { verdict, ..self }
    }
}

/// One broken rule of the command line, to be shown together with all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Name of the flag, without dashes.
    pub flag: String,
    /// The cause and the way out, lower case, no final dot.
    pub message: String,
}

impl Problem {
    /// A problem of `flag` (name without dashes).
    pub fn new(flag: impl Into<String>, message: impl Into<String>) -> Self {
        Self { flag: flag.into(), message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--{}: {}", self.flag, self.message)
    }
}
