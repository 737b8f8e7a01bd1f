//! Kubernetes' `resource.Quantity`: numbers with a suffix, and the one form in which they are written.

/// The canonical form of a quantity (`1000m` is `1`, `0.5` is `500m`, `1024Mi` is `1Gi`); `None` when it is none.
///
/// The suffix family of the text is kept: powers of 1024 (`Ki`…), of 1000 (`m`, `k`…) or an exponent (`1e3`). Binary quantities
/// that are not whole or below 1024 become decimal. Finer than nano is rounded away from zero.
pub(super) fn canonical(text: &str) -> Option<String> {
    let (negative, rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let suffix = Suffix::read(suffix)?;
    let digits = format!("{whole}{fraction}");
    let (base, exponent) = match suffix {
        Suffix::Binary(power) => (1_i128.checked_shl(10 * power)?, 0),
        Suffix::Decimal(exponent) | Suffix::Exponent(exponent) => (1, exponent),
    };
    let mantissa: i128 = digits
        .trim_start_matches('0')
        .parse()
        .or_else(|e| if digits.trim_start_matches('0').is_empty() { Ok(0) } else { Err(e) })
        .ok()?;
    let nano = to_nano(mantissa.checked_mul(base)?, exponent - i32::try_from(fraction.len()).ok()?)?;
    let sign = if negative { "-" } else { "" };
    if nano == 0 {
        return Some("0".to_owned());
    }
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

/// `mantissa * 10^exponent` in units of 10^-9, rounded away from zero.
fn to_nano(mantissa: i128, exponent: i32) -> Option<i128> {
    let shift = exponent.checked_add(9)?;
    let power = 10_i128.checked_pow(shift.unsigned_abs());
    if shift >= 0 {
        return if mantissa == 0 { Some(0) } else { mantissa.checked_mul(power?) };
    }
    Some(power.map_or(i128::from(mantissa != 0), |power| mantissa / power + i128::from(mantissa % power != 0)))
}

fn binary(mut value: i128) -> String {
    let mut power = 0;
    while value % 1024 == 0 && power + 1 < BINARY.len() {
        value /= 1024;
        power += 1;
    }
    format!("{value}{}", BINARY[power])
}

/// The largest suffix that leaves a whole number.
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
