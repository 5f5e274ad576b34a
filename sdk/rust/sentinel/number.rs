//! Numbers with their text, so that no digits are lost.

/// A JSON number.
#[derive(Clone, Debug)]
pub struct Number(String);

impl Number {
    /// The text must be a JSON number; the caller has checked it.
    pub(super) fn from_text(text: &str) -> Number {
        Number(text.to_string())
    }

    /// None for NaN and infinities, which JSON does not have.
    pub fn from_f64(f: f64) -> Option<Number> {
        if !f.is_finite() {
            return None;
        }
        // Without an exponent the largest f64 has 309 digits.
        let plain = f == 0.0 || (1e-7..1e21).contains(&f.abs());
        Some(Number(if plain { format!("{}", f) } else { format!("{:e}", f) }))
    }

    /// The number as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The number, if it is whole and fits: 12, 12.0 and 1.2e1 are 12.
    pub fn as_i64(&self) -> Option<i64> {
        if let Ok(n) = self.0.parse() {
            return Some(n);
        }
        let decimal = self.decimal();
        if decimal.digits.is_empty() {
            return Some(0);
        }
        if decimal.power < 0 || decimal.power > 18 {
            return None;
        }
        let digits: i64 = decimal.digits.parse().ok()?;
        let n = digits.checked_mul(10i64.pow(decimal.power as u32))?;
        Some(if decimal.negative { -n } else { n })
    }

    /// The nearest f64; None if the number is too large.
    pub fn as_f64(&self) -> Option<f64> {
        self.0.parse().ok().filter(|f: &f64| f.is_finite())
    }

    /// The number without zeros at either end, for comparing.
    #[inline(never)]
    fn decimal(&self) -> Decimal {
        let (negative, rest) = match self.0.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, self.0.as_str()),
        };
        let (mantissa, exponent) = rest.split_once(|c| c == 'e' || c == 'E').unwrap_or((rest, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = [whole, fraction].concat();
        let digits = all.trim_end_matches('0');
        // A larger exponent is clamped.
        let exponent: i64 = exponent.trim_start_matches('+').parse().unwrap_or(if exponent.starts_with('-') { i64::MIN / 4 } else { i64::MAX / 4 });
        let power = exponent.saturating_sub(fraction.len() as i64).saturating_add((all.len() - digits.len()) as i64);
        let digits = digits.trim_start_matches('0').to_string();
        if digits.is_empty() {
            return Decimal { negative: false, digits, power: 0 };
        }
        Decimal { negative, digits, power }
    }
}

/// A number as digits times a power of ten. Zero has no digits and no sign.
#[derive(PartialEq)]
struct Decimal {
    negative: bool,
    digits: String,
    power: i64,
}

/// Compared by value, exactly, at any length.
impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        self.0 == other.0 || self.decimal() == other.decimal()
    }
}

/// Reads a JSON number, `0.25` or `1e9`.
impl std::str::FromStr for Number {
    type Err = super::SyntaxError;

    fn from_str(text: &str) -> Result<Number, super::SyntaxError> {
        match super::parse(text)? {
            super::Value::Number(n) => Ok(n),
            _ => Err(super::SyntaxError { offset: 0, reason: "expected a number" }),
        }
    }
}

impl From<i64> for Number {
    fn from(n: i64) -> Number {
        Number(n.to_string())
    }
}
