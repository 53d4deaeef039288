//! [`Value`]: a flag's value after reading, one variant per shape, and how two occurrences become one.

use std::fmt;
use std::net::IpAddr;

use crate::syntax::{SyntaxError, boolean, composite, float, integer, ip, quantity, verbosity};
use crate::{GateSetting, GoDuration, Kind, NamedCertKey, VersionRequest};

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
    Gates(Vec<GateSetting>),
    /// [`Kind::NamedCertKeys`].
    CertKeys(Vec<NamedCertKey>),
    /// [`Kind::VModule`].
    Levels(Vec<(String, u8)>),
    /// [`Kind::Version`].
    Version(VersionRequest),
}

impl Value {
    /// Reads one occurrence of a flag.
    pub fn read(kind: Kind, text: &str) -> Result<Self, SyntaxError> {
        Ok(match kind {
            Kind::Bool => Value::Bool(boolean(text)?),
            Kind::Int => Value::Int(integer(text, 64)?),
            Kind::Int32 => Value::Int(integer(text, 32)?),
            Kind::Float => Value::Float(float(text, f64::MAX, "float")?),
            Kind::Float32 => Value::Float(float(text, f64::from(f32::MAX), "float32")?),
            Kind::String | Kind::CidrList => Value::Text(text.to_owned()),
            Kind::Duration => Value::Duration(text.parse()?),
            Kind::Ip => Value::Ip(ip(text)?),
            Kind::Strings => Value::Strings(composite::csv(text)?),
            Kind::ComponentVersions => Value::Strings(component_versions(text)?),
            Kind::Int32Slice => Value::Ints(int32_slice(text)?),
            Kind::StringMap => {
                Value::Map(unique(composite::string_map(text)?, |(key, _)| key.clone()))
            }
            Kind::FeatureGates => Value::Gates(unique(composite::gates(text)?, gate_key)),
            Kind::NamedCertKeys if text.is_empty() => Value::CertKeys(Vec::new()),
            Kind::NamedCertKeys => Value::CertKeys(vec![composite::cert_key(text)?]),
            Kind::Quantity => Value::Int(quantity(text)?),
            Kind::Verbosity => Value::Int(verbosity(text)?),
            Kind::VModule => Value::Levels(composite::vmodule(text)?),
            Kind::Version => Value::Version(composite::version(text)?),
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
    let versions = composite::csv(text)?;
    versions.iter().try_for_each(|entry| composite::component_version(entry))?;
    Ok(versions)
}

fn int32_slice(text: &str) -> Result<Vec<i64>, SyntaxError> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    text.split(',').map(|entry| integer(entry, 32)).collect()
}

fn gate_key(gate: &GateSetting) -> (String, String) {
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
            Value::Strings(values) => write!(f, "[{}]", composite::write_csv(values)),
            Value::Ints(values) => write!(f, "[{}]", listed(values)),
            Value::Map(values) => {
                write!(
                    f,
                    "[{}]",
                    composite::write_csv(values.iter().map(|(k, v)| format!("{k}={v}")))
                )
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
