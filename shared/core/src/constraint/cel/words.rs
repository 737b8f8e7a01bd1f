//! Renders errors of the evaluator, and values, in the words of OLM's CEL library (cel-go v0.29.2).

use std::collections::BTreeMap;

use cel::{ExecutionError, Value};

/// Formats a value as Go does.
pub(super) fn printed(value: &Value) -> String {
    let join = |parts: Vec<String>| parts.join(" ");
    match value {
        Value::Null => "NULL_VALUE".to_owned(),
        Value::String(text) => text.to_string(),
        Value::Int(n) => n.to_string(),
        Value::UInt(n) => n.to_string(),
        Value::Float(n) => float(*n),
        Value::Bool(value) => value.to_string(),
        Value::Bytes(bytes) => format!("[{}]", join(bytes.iter().map(u8::to_string).collect())),
        Value::List(list) => format!("[{}]", join(list.iter().map(printed).collect())),
        Value::Map(map) => {
            let sorted: BTreeMap<String, String> = map.map.iter().map(|(k, v)| (k.to_string(), printed(v))).collect();
            format!("map[{}]", join(sorted.into_iter().map(|(k, v)| format!("{k}:{v}")).collect()))
        }
        other => format!("{other:?}"),
    }
}

/// Formats a number like Go's `%v`: with an exponent when it is below -4 or above 20.
fn float(n: f64) -> String {
    let scientific = format!("{n:e}");
    match scientific.split_once('e').and_then(|(digits, exponent)| Some((digits, exponent.parse::<i32>().ok()?))) {
        Some((digits, exponent)) if !(-4..21).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ if n.is_infinite() => if n > 0.0 { "+Inf" } else { "-Inf" }.to_owned(),
        _ => n.to_string(),
    }
}

/// Renders an error of the evaluator.
pub(super) fn of_error(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::IndexOutOfBounds(index) => format!("index out of bounds: {}", printed(index)),
        ExecutionError::UnsupportedIndex(index, _) => format!("unsupported index value {} in list", printed(index)),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::FunctionError { function, message } => {
            // The messages of parsers of numbers and booleans.
            let is_parsed = message.starts_with("string parse error") || message.starts_with("Type conversion error");
            if is_parsed { format!("type conversion error from 'string' to '{function}'") } else { message.clone() }
        }
        ExecutionError::NoSuchOverload(call) => {
            let types: Vec<&str> = call.argument_types().iter().map(String::as_str).collect();
            no_such_overload(call.function(), &types)
        }
        ExecutionError::UnsupportedBinaryOperator(operator, left, _) => {
            let operator = match *operator {
                "add" => "_+_",
                "sub" => "_-_",
                "mul" => "_*_",
                "div" => "_/_",
                "rem" => "_%_",
                other => other,
            };
            no_such_overload(operator, &[type_of(left), ""])
        }
        ExecutionError::UnexpectedType { .. }
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnsupportedTargetType { .. } => NO_SUCH_OVERLOAD.to_owned(),
        other => other.to_string(),
    }
}

pub(super) const NO_SUCH_OVERLOAD: &str = "no such overload";

/// Returns the error for operands without overload. A function for which the first operand has other overloads is not
/// named.
fn no_such_overload(function: &str, types: &[&str]) -> String {
    let first = types.first().copied().unwrap_or_default();
    let is_known = match function {
        "string" | "int" | "uint" | "double" | "bytes" | "bool" => {
            return format!("{NO_SUCH_OVERLOAD}: {function}({first})");
        }
        "_[_]" | "_._" => match types {
            [_, "null_type"] => return "invalid qualifier type: types.Null".to_owned(),
            [_, "list"] => return "invalid qualifier type: *types.baseList".to_owned(),
            [_, "map"] => return "invalid qualifier type: *types.baseMap".to_owned(),
            ["list", index] => return format!("unsupported index type '{index}' in list"),
            _ => true,
        },
        "size" => false,
        "matches" => first == "string",
        "-_" => matches!(first, "bool" | "double" | "int" | "string"),
        "_+_" => matches!(first, "bytes" | "double" | "int" | "list" | "string" | "uint"),
        "_-_" | "_*_" | "_/_" => matches!(first, "double" | "int" | "string" | "uint"),
        "_%_" => matches!(first, "int" | "string" | "uint"),
        "_<_" | "_<=_" | "_>_" | "_>=_" => !matches!(first, "list" | "map" | "null_type" | "type"),
        _ => true,
    };
    if is_known { NO_SUCH_OVERLOAD.to_owned() } else { format!("{NO_SUCH_OVERLOAD}: {function}") }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "bool",
        Value::Bytes(_) => "bytes",
        Value::Float(_) => "double",
        Value::Int(_) => "int",
        Value::List(_) => "list",
        Value::Map(_) => "map",
        Value::Null => "null_type",
        Value::String(_) => "string",
        Value::UInt(_) => "uint",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_as_go_prints_them() {
        let cases = [
            (7.0, "7"),
            (2.5, "2.5"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (-1.5e300, "-1.5e+300"),
            (1e-5, "1e-05"),
        ];
        for (n, text) in cases {
            assert_eq!(float(n), text);
        }
    }
}
