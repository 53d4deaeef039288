//! The effective value of every declared flag, made once by the command and read by everyone.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use crate::{Gate, GoDuration, NamedCertKey, Problem, Spec, Value, VersionRequest};

struct Entry {
    spec: &'static Spec,
    value: Value,
    explicit: bool,
}

/// All flags with defaults filled in.
///
/// The typed readers are for flags that their caller declared: asking for an undeclared name, or
/// for another type than the declared one, is a mistake in the program and panics, because any
/// value returned instead would be a setting the user never made. [`Values::get`] asks politely.
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

    /// The value of a flag, if it is declared.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.entries.get(name).map(|entry| &entry.value)
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

    /// A [`crate::Kind::Bool`].
    pub fn bool(&self, name: &str) -> bool {
        match self.get(name) {
            Some(Value::Bool(value)) => *value,
            other => undeclared(name, "a boolean", other),
        }
    }

    /// Any whole number; quantities are bytes.
    pub fn int(&self, name: &str) -> i64 {
        match self.get(name) {
            Some(Value::Int(value)) => *value,
            other => undeclared(name, "a whole number", other),
        }
    }

    /// A decimal number.
    pub fn float(&self, name: &str) -> f64 {
        match self.get(name) {
            Some(Value::Float(value)) => *value,
            other => undeclared(name, "a decimal number", other),
        }
    }

    /// A text.
    pub fn string(&self, name: &str) -> &str {
        match self.get(name) {
            Some(Value::Text(value)) => value,
            other => undeclared(name, "a text", other),
        }
    }

    /// A duration; a negative one is zero, see [`Values::go_duration`].
    pub fn duration(&self, name: &str) -> Duration {
        self.go_duration(name).to_std()
    }

    /// A duration with its sign.
    pub fn go_duration(&self, name: &str) -> GoDuration {
        match self.get(name) {
            Some(Value::Duration(value)) => *value,
            other => undeclared(name, "a duration", other),
        }
    }

    /// An address; unspecified means all addresses.
    pub fn ip(&self, name: &str) -> IpAddr {
        match self.get(name) {
            Some(Value::Ip(value)) => *value,
            other => undeclared(name, "an address", other),
        }
    }

    /// A list of texts.
    pub fn strings(&self, name: &str) -> &[String] {
        match self.get(name) {
            Some(Value::Strings(values)) => values,
            other => undeclared(name, "a list", other),
        }
    }

    /// A list of numbers.
    pub fn ints(&self, name: &str) -> &[i64] {
        match self.get(name) {
            Some(Value::Ints(values)) => values,
            other => undeclared(name, "a list of numbers", other),
        }
    }

    /// A map, in the order given.
    pub fn map(&self, name: &str) -> &[(String, String)] {
        match self.get(name) {
            Some(Value::Map(values)) => values,
            other => undeclared(name, "a map", other),
        }
    }

    /// Feature gates that the user set.
    pub fn gates(&self, name: &str) -> &[Gate] {
        match self.get(name) {
            Some(Value::Gates(values)) => values,
            other => undeclared(name, "feature gates", other),
        }
    }

    /// Certificate pairs.
    pub fn cert_keys(&self, name: &str) -> &[NamedCertKey] {
        match self.get(name) {
            Some(Value::CertKeys(values)) => values,
            other => undeclared(name, "certificate pairs", other),
        }
    }

    /// What `--version` asked for.
    pub fn version_request(&self, name: &str) -> &VersionRequest {
        match self.get(name) {
            Some(Value::Version(value)) => value,
            other => undeclared(name, "a version request", other),
        }
    }
}

fn read(spec: &'static Spec, text: &str) -> Result<Value, Problem> {
    Value::read(spec.kind, text)
        .map_err(|error| Problem::new(spec.name, format!("invalid argument {text:?}: {error}")))
}

#[allow(clippy::panic, reason = "a flag read but not declared is a bug that no value can mend")]
fn undeclared(name: &str, wanted: &str, found: Option<&Value>) -> ! {
    match found {
        Some(value) => panic!("flag --{name} was read as {wanted} and is declared as {value:?}"),
        None => panic!("flag --{name} was read and is not declared"),
    }
}

#[cfg(test)]
mod tests;
