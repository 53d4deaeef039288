//! The syntax of quantities: `[sign]digits[.digits][suffix]`, where the suffix is `n` to `E`, `Ki`
//! to `Ei`, or an exponent such as `e3`. As by
//! the API server, finer than a billionth is rounded away from zero, and beyond 2^63-1 is 2^63-1.

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
