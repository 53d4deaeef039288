//! The effective value of every declared flag, made once by the command and read by everyone.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use crate::syntax::{self, SyntaxError, boolean, ip, number};
use crate::{Flag, FlagValue, Gate, GoDuration, Kind, NamedCertKey, Problem, Spec, VersionRequest};

/// The value of one flag. [`crate::Values`] hands out the contents; the shapes are public for
/// code that renders every flag.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// [`Kind::Bool`].
    Bool(bool),
    /// [`Kind::Int`], [`Kind::Int32`], [`Kind::Quantity`] in bytes, [`Kind::Verbosity`].
    Int(i64),
    /// [`Kind::Float`], [`Kind::Float32`].
    Float(f64),
    /// [`Kind::String`], [`Kind::CidrList`].
    Text(String),
    /// [`Kind::Duration`].
    Duration(GoDuration),
    /// [`Kind::Ip`].
    Ip(IpAddr),
    /// [`Kind::Strings`], [`Kind::ComponentVersions`].
    Strings(Vec<String>),
    /// [`Kind::Int32Slice`].
    Ints(Vec<i64>),
    /// [`Kind::StringMap`], keys unique, in the order first given.
    Map(Vec<(String, String)>),
    /// [`Kind::FeatureGates`], gates unique, in the order first given.
    Gates(Vec<Gate>),
    /// [`Kind::NamedCertKeys`].
    CertKeys(Vec<NamedCertKey>),
    /// [`Kind::VModule`].
    Levels(Vec<(String, u8)>),
    /// [`Kind::Version`].
    Version(VersionRequest),
}

impl Value {
    /// Reads one occurrence of a flag.
    ///
    /// # Errors
    /// The text breaks the syntax of `kind`.
    pub fn read(kind: Kind, text: &str) -> Result<Self, SyntaxError> {
        Ok(match kind {
            Kind::Bool => Value::Bool(boolean(text)?),
            Kind::Int => Value::Int(number::integer(text, 64)?),
            Kind::Int32 => Value::Int(number::integer(text, 32)?),
            Kind::Float => Value::Float(number::float(text, f64::MAX, "float")?),
            Kind::Float32 => Value::Float(number::float(text, f64::from(f32::MAX), "float32")?),
            Kind::String | Kind::CidrList => Value::Text(text.to_owned()),
            Kind::Duration => Value::Duration(text.parse()?),
            Kind::Ip => Value::Ip(ip(text)?),
            Kind::Strings => Value::Strings(syntax::csv(text)?),
            Kind::ComponentVersions => Value::Strings(component_versions(text)?),
            Kind::Int32Slice => Value::Ints(int32_slice(text)?),
            Kind::StringMap => {
                Value::Map(unique(syntax::string_map(text)?, |(key, _)| key.clone()))
            }
            Kind::FeatureGates => Value::Gates(unique(syntax::gates(text)?, gate_key)),
            Kind::NamedCertKeys if text.is_empty() => Value::CertKeys(Vec::new()),
            Kind::NamedCertKeys => Value::CertKeys(vec![syntax::cert_key(text)?]),
            Kind::Quantity => Value::Int(number::quantity(text)?),
            Kind::Verbosity => Value::Int(number::verbosity(text)?),
            Kind::VModule => Value::Levels(syntax::vmodule(text)?),
            Kind::Version => Value::Version(syntax::version(text)?),
        })
    }

    /// Takes in a later occurrence: lists and maps grow, anything else is replaced.
    pub fn follow_with(&mut self, later: Value) {
        match (self, later) {
            (Value::Strings(all), Value::Strings(more)) => all.extend(more),
            (Value::Ints(all), Value::Ints(more)) => all.extend(more),
            (Value::CertKeys(all), Value::CertKeys(more)) => all.extend(more),
            (Value::Map(all), Value::Map(more)) => merge(all, more, |(key, _)| key.clone()),
            (Value::Gates(all), Value::Gates(more)) => merge(all, more, gate_key),
            (earlier, later) => *earlier = later,
        }
    }

    /// Whether help leaves out the default: false, 0, empty.
    pub fn is_zero(&self) -> bool {
        match self {
            Value::Bool(value) => !value,
            Value::Int(value) => *value == 0,
            Value::Float(value) => *value == 0.0,
            Value::Text(value) => value.is_empty(),
            Value::Duration(value) => value.nanos() == 0,
            Value::Ip(_) => false,
            Value::Strings(values) => values.is_empty(),
            Value::Ints(values) => values.is_empty(),
            Value::Map(values) => values.is_empty(),
            Value::Gates(values) => values.is_empty(),
            Value::CertKeys(values) => values.is_empty(),
            Value::Levels(values) => values.is_empty(),
            Value::Version(value) => *value == VersionRequest::No,
        }
    }
}

fn component_versions(text: &str) -> Result<Vec<String>, SyntaxError> {
    let versions = syntax::csv(text)?;
    versions.iter().try_for_each(|entry| syntax::component_version(entry))?;
    Ok(versions)
}

fn int32_slice(text: &str) -> Result<Vec<i64>, SyntaxError> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    text.split(',').map(|entry| number::integer(entry, 32)).collect()
}

fn gate_key(gate: &Gate) -> (String, String) {
    (gate.component.clone(), gate.name.clone())
}

/// One entry per key: the place of the first, the contents of the last.
fn merge<T, K: PartialEq>(kept: &mut Vec<T>, entries: Vec<T>, key: impl Fn(&T) -> K) {
    for entry in entries {
        match kept.iter_mut().find(|earlier| key(earlier) == key(&entry)) {
            Some(earlier) => *earlier = entry,
            None => kept.push(entry),
        }
    }
}

fn unique<T, K: PartialEq>(entries: Vec<T>, key: impl Fn(&T) -> K) -> Vec<T> {
    let mut kept = Vec::new();
    merge(&mut kept, entries, key);
    kept
}

/// Prints a value as pflag does: lists in brackets, the rest as on the command line.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(value) => write!(f, "{value}"),
            Value::Int(value) => write!(f, "{value}"),
            Value::Float(value) => write!(f, "{value}"),
            Value::Text(value) => f.write_str(value),
            Value::Duration(value) => write!(f, "{value}"),
            Value::Ip(value) => write!(f, "{value}"),
            Value::Strings(values) => write!(f, "[{}]", syntax::write_csv(values)),
            Value::Ints(values) => write!(f, "[{}]", listed(values)),
            Value::Map(values) => {
                write!(f, "[{}]", syntax::write_csv(values.iter().map(|(k, v)| format!("{k}={v}"))))
            }
            Value::Gates(values) => f.write_str(&listed(values)),
            Value::Levels(values) => {
                let levels: Vec<String> = values.iter().map(|(k, v)| format!("{k}={v}")).collect();
                f.write_str(&levels.join(","))
            }
            Value::CertKeys(values) => {
                let pairs: Vec<String> = values.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", pairs.join(";"))
            }
            Value::Version(value) => write!(f, "{value}"),
        }
    }
}

fn listed<T: fmt::Display>(values: &[T]) -> String {
    let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
    texts.join(",")
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
    ///
    /// # Errors
    /// The first unknown name, or text that breaks its flag's syntax.
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
