//! [`Quantity`]: an exact number as the API writes it: `[sign]digits[.digits][suffix]`, where the
//! suffix is `n` to `E`, `Ki` to `Ei`, or an exponent such as `e3`. As by the API server, finer than a
//! billionth is rounded away from zero, and beyond 2^63-1 is 2^63-1.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};
use std::str::FromStr;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// A number of cores, bytes or things, in billionths, as the API server rounds it. Sums are exact and
/// independent of their order; decimals with fewer digits and floats round along the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity {
    nanos: i128,
}

impl Quantity {
    /// The quantity 0.
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

/// Billionths in one.
pub(crate) const NANOS: i128 = 1_000_000_000;

/// The text is no quantity. It is not repeated: the caller knows where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The text does not begin with a number.
    #[error("cannot read a quantity: it does not begin with a decimal number")]
    Number,
    /// The suffix is unknown.
    #[error(
        "cannot read a quantity: its suffix is not one of n u m k M G T P E Ki Mi Gi Ti Pi Ei, nor an exponent"
    )]
    Suffix,
}

/// The largest magnitude that the API server takes.
const MOST: i128 = i64::MAX as i128 * NANOS;
/// A number with its first digit this far before the point is above [`MOST`] under any suffix.
const FAR: i64 = 40;

/// The factor of a suffix.
enum Scale {
    /// A power of ten.
    Ten(i64),
    /// A power of two.
    Two(u32),
}

/// The number in billionths.
pub(crate) fn parse(text: &str) -> Result<i128, ParseError> {
    let (negative, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (before, after) = number.split_once('.').unwrap_or((number, ""));
    if after.contains('.') || (before.is_empty() && after.is_empty()) {
        return Err(ParseError::Number);
    }
    let magnitude = match scale(suffix)? {
        Scale::Ten(power) => nanos(before, after, power, NANOS),
        Scale::Two(power) => nanos(before, after, 0, NANOS << power),
    };
    Ok(if negative { -magnitude } else { magnitude })
}

fn scale(suffix: &str) -> Result<Scale, ParseError> {
    Ok(match suffix {
        "n" => Scale::Ten(-9),
        "u" => Scale::Ten(-6),
        "m" => Scale::Ten(-3),
        "" => Scale::Ten(0),
        "k" => Scale::Ten(3),
        "M" => Scale::Ten(6),
        "G" => Scale::Ten(9),
        "T" => Scale::Ten(12),
        "P" => Scale::Ten(15),
        "E" => Scale::Ten(18),
        "Ki" => Scale::Two(10),
        "Mi" => Scale::Two(20),
        "Gi" => Scale::Two(30),
        "Ti" => Scale::Two(40),
        "Pi" => Scale::Two(50),
        "Ei" => Scale::Two(60),
        _ => Scale::Ten(exponent(suffix)?),
    })
}

fn exponent(suffix: &str) -> Result<i64, ParseError> {
    let power = suffix.strip_prefix(['e', 'E']).and_then(|power| power.parse().ok());
    power.ok_or(ParseError::Suffix)
}

/// `before.after` times ten to `power` times `unit`, rounded up and cut off at [`MOST`]. The digits
/// are taken one by one, so that none is lost however many there are.
fn nanos(before: &str, after: &str, power: i64, unit: i128) -> i128 {
    let digits = || before.bytes().chain(after.bytes()).map(|digit| i128::from(digit - b'0'));
    let zeros = digits().take_while(|digit| *digit == 0).count();
    let significant = || digits().skip(zeros);
    if significant().next().is_none() {
        return 0;
    }
    // Where the point stands, counted from the first significant digit.
    let point = signed(before.len()).saturating_sub(signed(zeros)).saturating_add(power);
    if point > FAR {
        return MOST;
    }
    if point < -FAR {
        return 1;
    }
    let places = usize::try_from(point).unwrap_or(0);
    let padded = significant().chain(std::iter::repeat(0)).take(places);
    let whole = padded.fold(0_i128, |sum, digit| sum.saturating_mul(10).saturating_add(digit));
    let leading = std::iter::repeat_n(0, usize::try_from(-point).unwrap_or(0));
    let fraction: Vec<i128> = leading.chain(significant().skip(places)).collect();
    whole.saturating_mul(unit).saturating_add(fraction_of(&fraction, unit)).min(MOST)
}

/// `0.digits` times `unit`, rounded up. From the last digit to the first, floors of floors are the
/// floor of the whole, and any remainder on the way makes it one more.
fn fraction_of(digits: &[i128], unit: i128) -> i128 {
    let (floor, exact) = digits.iter().rev().fold((0, true), |(sum, exact), digit| {
        let next = digit * unit + sum;
        (next / 10, exact && next % 10 == 0)
    });
    floor + i128::from(!exact)
}

fn signed(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
