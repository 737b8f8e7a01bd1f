//! The type checks of a rule that OLM's CEL library makes on compilation, and the cel crate does not.
//!
//! `properties` is a list of maps from string to dynamic values, so most types are unknown before evaluation; errors in
//! literals and names (`1 == 1.0`, an unknown name) are rejected.

use std::collections::BTreeMap;
use std::fmt;

use cel::Program;
use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SourceInfo};

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Bool,
    Bytes,
    Double,
    Int,
    Null,
    Text,
    Uint,
    /// Unknown before evaluation.
    Dyn,
    /// Like [`Type::Dyn`], but not iterable.
    Any,
    /// The element type of an empty list.
    Unknown,
    List(Box<Self>),
    Map(Box<Self>, Box<Self>),
    /// The type of types.
    OfTypes,
    /// A semantic version: a string with its own ordering.
    Semver,
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("bool"),
            Self::Bytes => f.write_str("bytes"),
            Self::Double => f.write_str("double"),
            Self::Int => f.write_str("int"),
            Self::Null => f.write_str("null"),
            Self::Text => f.write_str("string"),
            Self::Uint => f.write_str("uint"),
            Self::Dyn | Self::Unknown => f.write_str("dyn"),
            Self::Any => f.write_str("any"),
            Self::List(element) => write!(f, "list({element})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::OfTypes => f.write_str("type"),
            Self::Semver => f.write_str("semver"),
        }
    }
}

impl Type {
    fn list(element: Self) -> Self {
        Self::List(Box::new(element))
    }

    fn map(key: Self, value: Self) -> Self {
        Self::Map(Box::new(key), Box::new(value))
    }

    /// Returns whether the type may be anything.
    fn is_open(&self) -> bool {
        matches!(self, Self::Dyn | Self::Any | Self::Unknown)
    }

    /// Returns whether both types can be the same.
    fn fits(&self, other: &Self) -> bool {
        match (self, other) {
            (a, b) if a.is_open() || b.is_open() => true,
            (Self::List(a), Self::List(b)) => a.fits(b),
            (Self::Map(a, b), Self::Map(c, d)) => a.fits(c) && b.fits(d),
            (a, b) => a == b,
        }
    }

    /// Returns the common type.
    fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, known) | (known, Self::Unknown) => known,
            (Self::List(a), Self::List(b)) => Self::list(a.join(*b)),
            (Self::Map(a, b), Self::Map(c, d)) => Self::map(a.join(*c), b.join(*d)),
            (a, b) if a == b => a,
            _ => Self::Dyn,
        }
    }
}

/// Maximum number of errors that are collected for a rule, as in OLM's CEL library.
const MOST_COMPLAINTS: usize = 100;

/// Errors, each with its line and column.
pub(super) type Complaints = Vec<((usize, usize), String)>;

/// Returns the type of a rule about the properties of a bundle, or all errors in it, from left to right.
pub(super) fn check(program: &Program) -> Result<Type, Complaints> {
    let properties = Type::list(Type::map(Type::Text, Type::Any));
    check_with(program, BTreeMap::from([("properties", properties)]), global, method)
}

/// Returns the type of a policy about a document with these fields.
pub(super) fn check_policy(program: &Program, fields: &[String]) -> Result<Type, Complaints> {
    let fields = fields.iter().map(|field| (field.as_str(), Type::Dyn)).collect();
    let of_versions = |name: &str, operands: &[Type]| match name {
        "semver" => Some(overloads(operands, &[(&[Type::Text], Type::Semver)])),
        "isSemver" => Some(overloads(operands, &[(&[Type::Text], Type::Bool)])),
        _ => None,
    };
    let of_a_version = |name: &str, operands: &[Type]| {
        use Type::{Bool, Int, Semver};
        match name {
            "major" | "minor" | "patch" => Some(overloads(operands, &[(&[Semver], Int)])),
            "isLessThan" | "isGreaterThan" => Some(overloads(operands, &[(&[Semver, Semver], Bool)])),
            "compareTo" => Some(overloads(operands, &[(&[Semver, Semver], Int)])),
            _ => None,
        }
    };
    check_with(
        program,
        fields,
        move |name, operands| of_versions(name, operands).unwrap_or_else(|| global(name, operands)),
        move |name, operands| of_a_version(name, operands).unwrap_or_else(|| method(name, operands)),
    )
}

fn check_with<'e>(
    program: &'e Program,
    variables: BTreeMap<&'e str, Type>,
    global: impl Fn(&str, &[Type]) -> Found + 'e,
    method: impl Fn(&str, &[Type]) -> Found + 'e,
) -> Result<Type, Complaints> {
    let mut checker = Checker {
        source: program.source_info(),
        variables,
        complaints: Vec::new(),
        global: Box::new(global),
        method: Box::new(method),
    };
    let found = checker.expression(program.expression());
    if checker.complaints.is_empty() {
        return Ok(found);
    }
    checker.complaints.sort();
    Err(checker.complaints)
}

/// Resolves a function of that name for operands of these types.
type Functions<'e> = Box<dyn Fn(&str, &[Type]) -> Found + 'e>;

struct Checker<'e> {
    source: &'e SourceInfo,
    variables: BTreeMap<&'e str, Type>,
    complaints: Complaints,
    /// The global functions, by name and operands.
    global: Functions<'e>,
    /// The methods; the target is the first operand.
    method: Functions<'e>,
}

impl<'e> Checker<'e> {
    /// Adds an error about an expression, whose type is then unknown.
    fn complain(&mut self, id: u64, message: String) -> Type {
        if self.complaints.len() >= MOST_COMPLAINTS {
            return Type::Dyn;
        }
        let start = self.source.offset_for(id).map_or(0, |(start, _)| start as usize);
        let before = self.source.source.chars().take(start);
        let (mut line, mut column) = (1, 1);
        for c in before {
            (line, column) = if c == '\n' { (line + 1, 1) } else { (line, column + 1) };
        }
        self.complaints.push(((line, column), super::shortened(&message)));
        Type::Dyn
    }

    fn undeclared(&mut self, id: u64, name: &str) -> Type {
        self.complain(id, format!("undeclared reference to '{name}' (in container '')"))
    }

    fn expression(&mut self, e: &'e IdedExpr) -> Type {
        match &e.expr {
            Expr::Unspecified => Type::Dyn,
            Expr::Literal(literal) => match literal {
                LiteralValue::Boolean(_) => Type::Bool,
                LiteralValue::Bytes(_) => Type::Bytes,
                LiteralValue::Double(_) => Type::Double,
                LiteralValue::Int(_) => Type::Int,
                LiteralValue::Null => Type::Null,
                LiteralValue::String(_) => Type::Text,
                LiteralValue::UInt(_) => Type::Uint,
            },
            Expr::Ident(name) => match self.variables.get(name.as_str()) {
                Some(known) => known.clone(),
                None if TYPES.contains(&name.as_str()) => Type::OfTypes,
                None => self.undeclared(e.id, name),
            },
            Expr::Select(select) => {
                let operand = self.expression(&select.operand);
                let found = match operand {
                    Type::Map(_, value) => *value,
                    open if open.is_open() => Type::Dyn,
                    other => self.complain(e.id, format!("type '{other}' does not support field selection")),
                };
                if select.test { Type::Bool } else { found }
            }
            Expr::List(list) => {
                let elements: Vec<Type> = list.elements.iter().map(|e| self.expression(e)).collect();
                Type::list(elements.into_iter().fold(Type::Unknown, Type::join))
            }
            Expr::Map(map) => {
                let (mut key, mut value) = (Type::Unknown, Type::Unknown);
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        key = key.join(self.expression(&entry.key));
                        value = value.join(self.expression(&entry.value));
                    }
                }
                Type::map(key, value)
            }
            Expr::Struct(made) => self.undeclared(e.id, &made.type_name),
            Expr::Call(call) => self.call(e.id, call),
            Expr::Comprehension(each) => self.comprehension(each),
        }
    }

    fn comprehension(&mut self, each: &'e ComprehensionExpr) -> Type {
        let element = match self.expression(&each.iter_range) {
            Type::List(element) => *element,
            Type::Map(key, _) => *key,
            Type::Dyn | Type::Unknown => Type::Dyn,
            other => {
                let must = "(must be list, map, or dynamic)";
                let message = format!("expression of type '{other}' cannot be range of a comprehension {must}");
                self.complain(each.iter_range.id, message)
            }
        };
        let start = self.expression(&each.accu_init);
        let outer = self.variables.insert(&each.accu_var, start.clone());
        let hidden = self.variables.insert(&each.iter_var, element);
        self.expression(&each.loop_cond);
        let step = self.expression(&each.loop_step);
        self.variables.insert(&each.accu_var, start.join(step));
        self.restore(&each.iter_var, hidden);
        let result = self.expression(&each.result);
        self.restore(&each.accu_var, outer);
        result
    }

    fn restore(&mut self, name: &'e str, before: Option<Type>) {
        match before {
            Some(before) => self.variables.insert(name, before),
            None => self.variables.remove(name),
        };
    }

    fn call(&mut self, id: u64, call: &'e CallExpr) -> Type {
        let target = call.target.as_deref().map(|t| self.expression(t));
        let arguments: Vec<Type> = call.args.iter().map(|a| self.expression(a)).collect();
        let name = call.func_name.as_str();
        if ["duration", "timestamp"].contains(&name) {
            return self.complain(id, format!("{name}s are not supported by kubectl-olm"));
        }
        let function = if target.is_some() { &self.method } else { &self.global };
        let operands: Vec<Type> = target.iter().cloned().chain(arguments.iter().cloned()).collect();
        match function(name, &operands) {
            Some(Ok(found)) => found,
            None => self.undeclared(id, name),
            Some(Err(NoOverload)) => {
                let list = arguments.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                let applied = target.map_or_else(|| format!("({list})"), |t| format!("{t}.({list})"));
                self.complain(id, format!("found no matching overload for '{name}' applied to '{applied}'"))
            }
        }
    }
}

/// Names of types.
const TYPES: [&str; 11] =
    ["bool", "bytes", "double", "dyn", "int", "list", "map", "null_type", "string", "type", "uint"];

/// No overload of the function accepts these operands.
struct NoOverload;

/// The result type of a function; `None` when the function does not exist.
type Found = Option<Result<Type, NoOverload>>;

/// Tries overloads, each with the types of its operands and its result. If several match and their results differ, the
/// result is unknown.
fn overloads(operands: &[Type], known: &[(&[Type], Type)]) -> Found {
    let fits = |takes: &&(&[Type], Type)| {
        takes.0.len() == operands.len() && takes.0.iter().zip(operands).all(|(a, b)| a.fits(b))
    };
    let results = known.iter().filter(fits).map(|(_, result)| result.clone());
    Some(results.reduce(Type::join).ok_or(NoOverload))
}

fn global(name: &str, operands: &[Type]) -> Found {
    use Type::{Bool, Bytes, Double, Dyn, Int, Text, Uint};
    let sizes = [Text, Bytes, Type::list(Dyn), Type::map(Dyn, Dyn)];
    let same = |types: &[Type]| -> Vec<Vec<Type>> { types.iter().map(|t| vec![t.clone(), t.clone()]).collect() };
    let binary = |types: &[Type], result: Option<Type>| {
        let takes = same(types);
        let known: Vec<(&[Type], Type)> =
            takes.iter().map(|t| (&t[..], result.clone().unwrap_or_else(|| t[0].clone()))).collect();
        overloads(operands, &known)
    };
    let unary = |types: &[Type], result: Option<Type>| {
        let known: Vec<(&[Type], Type)> =
            types.iter().map(|t| (std::slice::from_ref(t), result.clone().unwrap_or_else(|| t.clone()))).collect();
        overloads(operands, &known)
    };
    match (name, operands) {
        ("_&&_" | "_||_", _) => binary(&[Bool], None),
        ("!_" | "@not_strictly_false", _) => unary(&[Bool], None),
        ("-_", _) => unary(&[Double, Int], None),
        ("_==_" | "_!=_", [a, b]) => Some(if a.fits(b) { Ok(Bool) } else { Err(NoOverload) }),
        ("_?_:_", [condition, a, b]) => {
            let fits = condition.fits(&Bool) && a.fits(b);
            Some(if fits { Ok(a.clone().join(b.clone())) } else { Err(NoOverload) })
        }
        ("_+_", [Type::List(a), Type::List(b)]) => {
            Some(if a.fits(b) { Ok(Type::list(a.clone().join((**b).clone()))) } else { Err(NoOverload) })
        }
        ("_+_", _) => binary(&[Bytes, Double, Int, Type::list(Dyn), Text, Uint], None),
        ("_-_" | "_*_" | "_/_", _) => binary(&[Double, Int, Uint], None),
        ("_%_", _) => binary(&[Int, Uint], None),
        ("_<_" | "_<=_" | "_>_" | "_>=_", _) => binary(&[Bool, Bytes, Double, Int, Text, Uint], Some(Bool)),
        ("_[_]", [Type::List(element), index]) => {
            Some(if index.fits(&Int) { Ok((**element).clone()) } else { Err(NoOverload) })
        }
        ("_[_]", [Type::Map(key, value), index]) => {
            Some(if index.fits(key) { Ok((**value).clone()) } else { Err(NoOverload) })
        }
        ("_[_]", [open, _]) if open.is_open() => Some(Ok(Dyn)),
        ("@in", [element, Type::List(of) | Type::Map(of, _)]) => {
            Some(if element.fits(of) { Ok(Bool) } else { Err(NoOverload) })
        }
        ("@in", [_, open]) if open.is_open() => Some(Ok(Bool)),
        ("size", _) => unary(&sizes, Some(Int)),
        ("type", [_]) => Some(Ok(Type::OfTypes)),
        ("dyn", [_]) => Some(Ok(Dyn)),
        ("matches", _) => binary(&[Text], Some(Bool)),
        ("semver_compare", [_, _]) => Some(Ok(Int)),
        ("int", _) => unary(&[Double, Int, Text, Uint], Some(Int)),
        ("uint", _) => unary(&[Double, Int, Text, Uint], Some(Uint)),
        ("double", _) => unary(&[Double, Int, Text, Uint], Some(Double)),
        ("string", _) => unary(&[Bool, Bytes, Double, Int, Text, Uint], Some(Text)),
        ("bytes", _) => unary(&[Bytes, Text], Some(Bytes)),
        ("bool", _) => unary(&[Bool, Text], Some(Bool)),
        ("_==_" | "_!=_" | "_?_:_" | "_[_]" | "@in" | "type" | "dyn" | "semver_compare", _) => Some(Err(NoOverload)),
        _ => None,
    }
}

fn method(name: &str, operands: &[Type]) -> Found {
    match name {
        "contains" | "endsWith" | "matches" | "startsWith" => {
            overloads(operands, &[(&[Type::Text, Type::Text], Type::Bool)])
        }
        "size" => global("size", operands),
        _ => None,
    }
}
