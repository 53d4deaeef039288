//! [`Quantity`]: an exact number as the API writes it.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};
use std::str::FromStr;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::quantity::parse::{NANOS, ParseError, parse};

/// A number of cores, bytes or things, in billionths, as the API server rounds it. Sums are exact and
/// independent of their order; decimals with fewer digits and floats round along the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity {
    nanos: i128,
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self { nanos: 0 };

    /// A whole number.
    pub const fn whole(number: i64) -> Self {
        // 64 bits times 30 bits fit 128.
        Self { nanos: number as i128 * NANOS }
    }

    /// Rounded up to a whole number: bytes, as memory is shown.
    pub fn as_whole(self) -> i128 {
        ceil(self.nanos, NANOS)
    }

    /// Rounded up to thousandths.
    pub fn as_milli(self) -> i128 {
        ceil(self.nanos, NANOS / 1000)
    }

    /// The next whole number up.
    #[must_use]
    pub fn rounded_to_whole(self) -> Self {
        Self { nanos: self.as_whole().saturating_mul(NANOS) }
    }

    /// The next thousandth up.
    #[must_use]
    pub fn rounded_to_milli(self) -> Self {
        Self { nanos: self.as_milli().saturating_mul(NANOS / 1000) }
    }

    /// The nearest float, for gauges.
    #[expect(clippy::cast_precision_loss, reason = "a gauge holds no more digits")]
    pub fn as_f64(self) -> f64 {
        self.nanos as f64 / NANOS as f64
    }
}

/// Up, also below zero.
fn ceil(nanos: i128, unit: i128) -> i128 {
    -(-nanos).div_euclid(unit)
}

/// Ends at the largest number rather than wrap around, which more than 10^10 of the largest
/// quantities would take.
impl Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { nanos: self.nanos.saturating_add(other.nanos) }
    }
}

impl AddAssign for Quantity {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Quantity {
    fn sum<I: Iterator<Item = Self>>(quantities: I) -> Self {
        quantities.fold(Self::ZERO, Add::add)
    }
}

impl FromStr for Quantity {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse(text).map(|nanos| Self { nanos })
    }
}

/// The shortest decimal form that is exact: whole, or with the suffix `m`, `u` or `n`.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(NANOS, ""), (NANOS / 1_000, "m"), (NANOS / 1_000_000, "u"), (1, "n")];
        let exact = units.into_iter().find(|(unit, _)| self.nanos % unit == 0);
        let (unit, suffix) = exact.unwrap_or((1, "n"));
        write!(f, "{}{suffix}", self.nanos / unit)
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// From text, or from a number as manifests may have it.
impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader)
    }
}

struct Reader;

impl Visitor<'_> for Reader {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity such as 500m or 16Gi")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Quantity, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Quantity, E> {
        Ok(Quantity::whole(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Quantity, E> {
        Ok(Quantity::whole(i64::try_from(number).unwrap_or(i64::MAX)))
    }

    /// By its shortest text: 0.1 is a tenth, not the binary number next to it.
    fn visit_f64<E: Error>(self, number: f64) -> Result<Quantity, E> {
        number.to_string().parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests;
