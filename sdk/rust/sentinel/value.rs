//! JSON values.

use super::Number;

/// One JSON value. An object keeps the order of its fields, a number its text.
#[derive(Clone, Debug)]
pub enum Value {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Value>),
    /// Names are unique.
    Object(Vec<(String, Value)>),
}

/// The value of a missing field.
static NULL: Value = Value::Null;

impl Value {
    /// An object without fields; add them with [`Value::with`].
    pub fn object() -> Value {
        Value::Object(Vec::new())
    }

    /// The field of an object, null if there is none, so that paths into an answer need
    /// no checks.
    #[inline(never)]
    pub fn get(&self, name: &str) -> &Value {
        self.find(name).unwrap_or(&NULL)
    }

    /// The field of an object, if it exists: null is a value too.
    #[inline(never)]
    pub fn find(&self, name: &str) -> Option<&Value> {
        self.fields().iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// The item of a list, null if there is none.
    pub fn at(&self, index: usize) -> &Value {
        self.items().get(index).unwrap_or(&NULL)
    }

    /// The items of a list; other values have none.
    #[inline(never)]
    pub fn items(&self) -> &[Value] {
        match self {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// The fields of an object; other values have none.
    #[inline(never)]
    pub fn fields(&self) -> &[(String, Value)] {
        match self {
            Value::Object(fields) => fields,
            _ => &[],
        }
    }

    /// Reports whether this is not null.
    pub fn given(&self) -> bool {
        !matches!(self, Value::Null)
    }

    /// The number with its text, of any length.
    pub fn as_number(&self) -> Option<&Number> {
        match self {
            Value::Number(n) => Some(n),
            _ => None,
        }
    }

    #[inline(never)]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Only true or false: other values are not converted.
    #[inline(never)]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// The number, if it is whole and fits.
    #[inline(never)]
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Number(n) => n.as_i64(),
            _ => None,
        }
    }

    /// The number, rounded to the nearest f64.
    #[inline(never)]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Number(n) => n.as_f64(),
            _ => None,
        }
    }

    /// The texts of a list that has only texts.
    #[inline(never)]
    pub fn as_texts(&self) -> Option<Vec<String>> {
        match self {
            Value::List(items) => items.iter().map(|item| item.as_str().map(str::to_string)).collect(),
            _ => None,
        }
    }

    /// The text, "" for other values.
    #[inline(never)]
    pub fn text_or_empty(&self) -> String {
        self.as_str().unwrap_or("").to_string()
    }

    /// The object with one field added or replaced. Other values become an object with
    /// only this field.
    pub fn with(self, name: &str, value: impl Into<Value>) -> Value {
        self.plus(name, value.into())
    }

    #[inline(never)]
    fn plus(mut self, name: &str, value: Value) -> Value {
        self.put(name, value);
        self
    }

    /// Like [`Value::with`], if there is a value.
    pub fn with_some(self, name: &str, value: Option<impl Into<Value>>) -> Value {
        match value {
            Some(value) => self.plus(name, value.into()),
            None => self,
        }
    }

    /// Sets a field in place, as [`Value::with`] does.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.put(name, value.into());
    }

    /// Not inlined, so that a module has this code only once: a step is mostly code
    /// that reads and builds values.
    #[inline(never)]
    pub(crate) fn put(&mut self, name: &str, value: Value) {
        match self {
            Value::Object(fields) => match fields.iter_mut().find(|(key, _)| key == name) {
                Some(field) => field.1 = value,
                None => fields.push((name.to_string(), value)),
            },
            _ => *self = Value::Object(vec![(name.to_string(), value)]),
        }
    }

    /// The name of the type, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Object(_) => "an object",
        }
    }
}

/// The order of an object's fields is ignored, and numbers are compared by value:
/// 1.0 is 1.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Number(a), Value::Number(b)) => a == b,
            (Value::Text(a), Value::Text(b)) => a == b,
            (Value::List(a), Value::List(b)) => a == b,
            (Value::Object(a), Value::Object(b)) => {
                // Objects mostly have their fields in the same order; looking
                // each one up costs the square of their number.
                a.len() == b.len()
                    && a.iter().enumerate().all(|(i, (name, value))| {
                        let same = if b[i].0 == *name { Some(&b[i].1) } else { other.find(name) };
                        same == Some(value)
                    })
            }
            _ => false,
        }
    }
}
