//! The effective value of every declared flag, made once by the command and read by everyone.

use std::collections::BTreeMap;

use crate::{Flag, FlagValue, Problem, Spec, Value};

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
