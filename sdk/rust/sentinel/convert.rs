//! Conversions to values.

use super::{Number, Value};

impl From<bool> for Value {
    #[inline(never)]
    fn from(b: bool) -> Value {
        Value::Bool(b)
    }
}

/// Whole numbers are written with all their digits, also beyond 2^53.
impl From<i64> for Value {
    #[inline(never)]
    fn from(n: i64) -> Value {
        Value::Number(Number::from(n))
    }
}

impl From<i32> for Value {
    fn from(n: i32) -> Value {
        Value::from(n as i64)
    }
}

/// For lengths and counts, which are far below the maximum of an i64.
impl From<usize> for Value {
    fn from(n: usize) -> Value {
        Value::from(n as i64)
    }
}

/// Keeps the text of the number.
impl From<Number> for Value {
    fn from(n: Number) -> Value {
        Value::Number(n)
    }
}

impl From<&Number> for Value {
    fn from(n: &Number) -> Value {
        Value::Number(n.clone())
    }
}

/// NaN and infinities become null.
impl From<f64> for Value {
    #[inline(never)]
    fn from(f: f64) -> Value {
        Number::from_f64(f).map_or(Value::Null, Value::Number)
    }
}

impl From<&str> for Value {
    #[inline(never)]
    fn from(text: &str) -> Value {
        Value::Text(text.to_string())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<&String> for Value {
    #[inline(never)]
    fn from(text: &String) -> Value {
        Value::Text(text.clone())
    }
}

/// A copy, so that a field of the input can be put into the output.
impl From<&Value> for Value {
    #[inline(never)]
    fn from(value: &Value) -> Value {
        value.clone()
    }
}

/// None becomes null. To omit a field, see [`Value::with_some`].
impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(items: Vec<T>) -> Value {
        Value::List(items.into_iter().map(Into::into).collect())
    }
}

/// For borrowed lists, as in requests.
impl From<&[String]> for Value {
    #[inline(never)]
    fn from(items: &[String]) -> Value {
        Value::List(items.iter().map(Value::from).collect())
    }
}

impl From<&[&str]> for Value {
    #[inline(never)]
    fn from(items: &[&str]) -> Value {
        Value::List(items.iter().map(|item| Value::from(*item)).collect())
    }
}
