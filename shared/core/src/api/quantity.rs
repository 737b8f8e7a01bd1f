//! Kubernetes' `resource.Quantity`: numbers with a suffix, and their canonical form.

/// Returns the canonical form in Go (`1000m` is `1`, `0.5` is `500m`, `1024Mi` is `1Gi`); `None` for an invalid quantity.
///
/// The suffix family of the text is preserved: powers of 1024 (`Ki`…), of 1000 (`m`, `k`…) or an exponent (`1e3`). Binary
/// quantities that are fractional or below 1024 become decimal. Values finer than nano are rounded away from zero. Text
/// that Go parses without big numbers and considers canonical is not changed, so that `+5` and `1E3` stay as they are;
/// source: apimachinery 0.36. One difference: above 1000E Go loses the suffix, this implementation does not.
pub fn canonical(text: &str) -> Option<String> {
    let text = text.trim();
    let (negative, rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') {
        return None;
    }
    let suffix = Suffix::read(suffix)?;
    let whole = whole.trim_start_matches('0');
    let digits = if whole.is_empty() { format!("0{fraction}") } else { format!("{whole}{fraction}") };
    let decimals = i32::try_from(fraction.len()).ok()?;
    if is_kept(&digits, decimals, suffix) {
        return Some(text.to_owned());
    }
    let (base, exponent) = match suffix {
        Suffix::Binary(power) => (1_i128 << (10 * power), 0),
        Suffix::Decimal(exponent) | Suffix::Exponent(exponent) => (1, exponent),
    };
    let nano = to_nano(digits.parse::<i128>().ok()?.checked_mul(base)?, exponent.checked_sub(decimals)?)?;
    if nano == 0 {
        return Some("0".to_owned());
    }
    let sign = if negative { "-" } else { "" };
    let text = match suffix {
        Suffix::Binary(_) if nano % NANO == 0 && nano >= 1024 * NANO => binary((nano / NANO).min(i128::from(i64::MAX))),
        Suffix::Binary(_) | Suffix::Decimal(_) => {
            decimal(nano, |exponent| Some(DECIMAL.iter().find(|(_, e)| *e == exponent)?.0.to_owned()))
        }
        Suffix::Exponent(_) => {
            decimal(nano, |exponent| Some(if exponent == 0 { String::new() } else { format!("e{exponent}") }))
        }
    };
    Some(format!("{sign}{text}"))
}

/// Returns whether Go considers the text canonical. `digits` are those before and after the point.
fn is_kept(digits: &str, decimals: i32, suffix: Suffix) -> bool {
    // The precision of Go's fast path for 64-bit numbers.
    match suffix {
        Suffix::Binary(power) => {
            let enough = digits.len() + (power * 3) as usize <= 14;
            decimals == 0 && enough && digits.parse::<u64>().is_ok_and(|value| value % 8 != 0)
        }
        Suffix::Decimal(exponent) | Suffix::Exponent(exponent) => {
            let scale = exponent.saturating_sub(decimals);
            digits.len() <= 18 && scale >= -9 && scale % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0')
        }
    }
}

const NANO: i128 = 1_000_000_000;

const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];

const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

#[derive(Clone, Copy)]
enum Suffix {
    /// A power of 1024, at least 1.
    Binary(u32),
    /// A power of ten, as a letter.
    Decimal(i32),
    /// A power of ten, written `e3`.
    Exponent(i32),
}

impl Suffix {
    fn read(text: &str) -> Option<Self> {
        if let Some((_, exponent)) = DECIMAL.iter().find(|(suffix, _)| *suffix == text) {
            return Some(Self::Decimal(*exponent));
        }
        if let Some(power) = BINARY.iter().position(|suffix| *suffix == text) {
            return Some(Self::Binary(u32::try_from(power).ok()?));
        }
        text.strip_prefix(['e', 'E'])?.parse().ok().map(Self::Exponent)
    }
}

/// Converts `mantissa * 10^exponent` to units of 10^-9, rounded away from zero.
fn to_nano(mantissa: i128, exponent: i32) -> Option<i128> {
    let shift = exponent.checked_add(9)?;
    let power = 10_i128.checked_pow(shift.unsigned_abs());
    if shift >= 0 {
        return if mantissa == 0 { Some(0) } else { mantissa.checked_mul(power?) };
    }
    let power = power.unwrap_or(i128::MAX);
    Some(mantissa / power + i128::from(mantissa % power != 0))
}

fn binary(mut value: i128) -> String {
    let mut power = 0;
    while value % 1024 == 0 && power + 1 < BINARY.len() {
        value /= 1024;
        power += 1;
    }
    format!("{value}{}", BINARY[power])
}

/// Uses the largest suffix that leaves an integer.
fn decimal(nano: i128, suffix: impl Fn(i32) -> Option<String>) -> String {
    let (mut value, mut exponent) = (nano, -9);
    let mut best = (value, suffix(exponent).unwrap_or_default());
    while value % 1000 == 0 {
        value /= 1000;
        exponent += 3;
        match suffix(exponent) {
            Some(text) => best = (value, text),
            None => break,
        }
    }
    format!("{}{}", best.0, best.1)
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn written_as_apimachinery_writes_them() {
        for (text, expected) in [
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("1500Mi", "1500Mi"),
            ("100m", "100m"),
            ("1", "1"),
            ("0", "0"),
            ("0m", "0"),
            ("1e3", "1e3"),
            ("1E3", "1E3"),
            ("12e6", "12e6"),
            ("1.5e3", "1500"),
            ("1e-3", "1e-3"),
            ("1000000", "1M"),
            ("1000k", "1M"),
            ("1024", "1024"),
            ("1023", "1023"),
            ("1024Ki", "1Mi"),
            ("512Ki", "512Ki"),
            ("0.5Ki", "512"),
            ("0.5Mi", "512Ki"),
            ("1.2Ki", "1228800m"),
            ("0.1n", "1n"),
            ("1n", "1n"),
            ("-1.5", "-1500m"),
            ("-1500m", "-1500m"),
            ("+5", "+5"),
            ("5.", "5."),
            (".5", "500m"),
            ("1_0", ""),
            ("", ""),
            ("Mi", "0"),
            ("1mi", ""),
            ("1Ki1", ""),
            ("9223372036854775807", "9223372036854775807"),
            ("9223372036854775808", "9223372036854775808"),
            ("100E", "100E"),
            ("16Ei", "9223372036854775807"),
            ("7Ei", "7Ei"),
            ("8Ei", "9223372036854775807"),
            ("0.001", "1m"),
            ("0.0001", "100u"),
            ("123456789n", "123456789n"),
            ("1.23456789012", "1234567891n"),
            ("1.2345678901Gi", "1325607178167805543n"),
            ("1 Gi", ""),
            ("2000000Ki", "2000000Ki"),
            ("1e20", "100e18"),
            ("1e21", "1e21"),
            ("1e-10", "1e-9"),
            ("1.0", "1"),
            ("10.10", "10100m"),
            ("0.25", "250m"),
            ("250u", "250u"),
            ("00010", "00010"),
            ("0.000", "0"),
            ("-0", "0"),
            ("-1Ki", "-1Ki"),
            ("-1024", "-1024"),
            ("-2Mi", "-2Mi"),
            ("1.5E", "1500P"),
            ("1Ei", "1Ei"),
            ("1e", ""),
            ("1e+3", "1e+3"),
            ("1E", "1E"),
            ("1ee", ""),
            ("999999999999999999999999m", "999999999999999999999999m"),
            ("1T", "1T"),
            ("1000T", "1P"),
            ("1e6", "1e6"),
            ("1500e3", "1500e3"),
            ("-1e3", "-1e3"),
            ("0.5e3", "500"),
            ("1.1e-12", "1e-9"),
            ("3.14Ki", "3215360m"),
            ("64M", "64M"),
            ("1.7e3", "1700"),
            ("0Ki", "0"),
            ("1k0", ""),
        ] {
            assert_eq!(canonical(text).unwrap_or_default(), expected, "{text:?}");
        }
    }
}
