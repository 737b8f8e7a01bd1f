//! Kubernetes' resource quantities (`500m`, `1Gi`) in canonical form.

use serde_json::Value;

/// What a quantity must look like, as refusals quote it.
pub(super) const PATTERN: &str = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$";

/// Suffixes of powers of 1024.
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// Suffixes of powers of 1000, from 10^-9.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
/// The exponent of ten of the smallest decimal suffix.
const NANO: i32 = -9;

enum Form {
    Binary(u32),
    Decimal(i32),
    Exponent(i32),
}

/// The quantity as the API server writes it: `1000m` is `1`, `0.5` is `500m`, `1024Mi` is `1Gi`. None when it is not one.
pub(super) fn canonical(value: &Value) -> Option<Value> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    canonical_text(&text).map(Value::String)
}

fn canonical_text(text: &str) -> Option<String> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let mut mantissa: i128 = format!("0{whole}{fraction}").parse().ok()?;
    let mut exponent = -i32::try_from(fraction.len()).ok()?;
    let sign = if negative && mantissa != 0 { "-" } else { "" };
    if mantissa == 0 {
        return Some("0".into());
    }
    match form(suffix)? {
        Form::Binary(power) => {
            let mut scale: i128 = 1 << (10 * power);
            while exponent < 0 {
                (scale, exponent) = if scale % 10 == 0 { (scale / 10, exponent + 1) } else { break };
            }
            mantissa = mantissa.checked_mul(scale)?;
            let divisor = 10_i128.checked_pow(exponent.unsigned_abs())?;
            if mantissa % divisor != 0 {
                // Fractions of a byte fall back to the decimal form.
                return Some(format!("{sign}{}", decimal(mantissa, exponent)?));
            }
            mantissa /= divisor;
            let mut power = 0;
            while mantissa % 1024 == 0 && power + 1 < BINARY.len() {
                mantissa /= 1024;
                power += 1;
            }
            Some(format!("{sign}{mantissa}{}", BINARY[power]))
        }
        Form::Decimal(power) => Some(format!("{sign}{}", decimal(mantissa, exponent + power)?)),
        Form::Exponent(power) => {
            exponent += power;
            while mantissa % 10 == 0 {
                (mantissa, exponent) = (mantissa / 10, exponent + 1);
            }
            while exponent.rem_euclid(3) != 0 {
                (mantissa, exponent) = (mantissa.checked_mul(10)?, exponent - 1);
            }
            Some(if exponent == 0 { format!("{sign}{mantissa}") } else { format!("{sign}{mantissa}e{exponent}") })
        }
    }
}

fn form(suffix: &str) -> Option<Form> {
    if let Some(power) = BINARY.iter().skip(1).position(|s| *s == suffix) {
        return Some(Form::Binary(u32::try_from(power).ok()? + 1));
    }
    if let Some(power) = DECIMAL.iter().position(|s| *s == suffix) {
        return Some(Form::Decimal(NANO + 3 * i32::try_from(power).ok()?));
    }
    suffix.strip_prefix(['e', 'E']).and_then(|power| power.parse().ok()).map(Form::Exponent)
}

/// `mantissa * 10^exponent` with the largest suffix that leaves no fraction; finer than nano is rounded up.
fn decimal(mut mantissa: i128, mut exponent: i32) -> Option<String> {
    while exponent < NANO {
        mantissa = mantissa / 10 + i128::from(mantissa % 10 != 0);
        exponent += 1;
    }
    while (exponent - NANO) % 3 != 0 {
        (mantissa, exponent) = (mantissa.checked_mul(10)?, exponent - 1);
    }
    let mut index = usize::try_from((exponent - NANO) / 3).ok()?;
    while mantissa % 1000 == 0 && index + 1 < DECIMAL.len() {
        mantissa /= 1000;
        index += 1;
    }
    while index >= DECIMAL.len() {
        mantissa = mantissa.checked_mul(1000)?;
        index -= 1;
    }
    Some(format!("{mantissa}{}", DECIMAL[index]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_take_their_canonical_form() {
        for (given, wanted) in [
            ("1000m", "1"),
            ("0.5", "500m"),
            ("0.1", "100m"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("100M", "100M"),
            ("1000M", "1G"),
            ("0Mi", "0"),
            ("2", "2"),
            ("1e3", "1e3"),
            ("12e4", "120e3"),
            ("-1000m", "-1"),
            ("64", "64"),
            ("0.00000000001", "1n"),
        ] {
            assert_eq!(canonical_text(given).as_deref(), Some(wanted), "{given}");
        }
        for bad in ["", "x", "1.2.3", "5 Gi", "1gi"] {
            assert_eq!(canonical_text(bad), None, "{bad}");
        }
    }
}
