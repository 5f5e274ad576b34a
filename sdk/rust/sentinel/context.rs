//! One attempt of one step: its input, clause A3, and access to the host.

use super::testing::Host;
use super::{kernel, parse, Code, Error, Result, Value, ABI};

/// The input of a step, and the calls that it can make of the host: each is a
/// method in a file of its own.
///
/// A call blocks until its answer arrives. The module may be unloaded meanwhile and
/// executed again from its start later; calls that have been answered then return the
/// same answer at once. So the calls of a step must depend only on its input and on
/// earlier answers.
pub struct Context<'a> {
    pub step_type: String,
    /// None if the definition has none; the same for `name`.
    pub id: Option<String>,
    pub name: Option<String>,
    /// Position in the definition: `3.then.0`.
    pub address: String,
    /// Position in the run: `1#7.steps.0`.
    pub path: String,
    pub run: String,
    pub sentinel: String,
    /// From 1, as is `attempt`.
    pub iteration: i64,
    pub attempt: i64,
    /// An absolute path, for messages: a guest has no files.
    pub workspace: String,
    /// Idempotency key of this step execution, equal for all its attempts.
    pub key: String,
    /// Describes the attempt before; None for the first attempt.
    pub retry: Option<Retry>,
    /// Of this attempt's last checkpoint, if there was one.
    pub state: Option<Value>,
    /// The step's own fields.
    pub fields: Value,
    /// The fake host of a test; None is the host of the module.
    host: Option<&'a mut dyn Host>,
}

/// Describes the attempt before.
pub struct Retry {
    /// The number of attempts so far.
    pub attempts: i64,
    pub error: Error,
    /// Of the error, as the host classified it.
    pub category: String,
}

impl<'a> Context<'a> {
    pub(super) fn new(input: &Value, host: Option<&'a mut dyn Host>) -> Result<Context<'a>> {
        let abi = input.get("abi").as_i64().unwrap_or(0);
        if abi != ABI {
            return Err(Error::new(Code::Internal, format!("run input: abi {}, want {}", abi, ABI)));
        }
        let (step, run) = (input.get("step"), input.get("run"));
        let optional = |name: &str| step.get(name).as_str().map(str::to_string);
        let retry = input.get("retry");
        Ok(Context {
            step_type: step.get("type").text_or_empty(),
            id: optional("id"),
            name: optional("name"),
            address: step.get("address").text_or_empty(),
            path: step.get("path").text_or_empty(),
            run: run.get("id").text_or_empty(),
            sentinel: run.get("sentinel").text_or_empty(),
            iteration: run.get("iteration").as_i64().unwrap_or(1),
            attempt: input.get("attempt").as_i64().unwrap_or(1),
            workspace: run.get("workspace").text_or_empty(),
            key: run.get("key").text_or_empty(),
            retry: Error::from_value(retry.get("error")).map(|error| Retry {
                attempts: retry.get("attempts").as_i64().unwrap_or(0),
                error,
                category: retry.get("category").text_or_empty(),
            }),
            state: input.find("state").cloned(),
            fields: step.get("fields").clone(),
            host,
        })
    }

    /// One of the step's own fields, null if it is not given.
    pub fn field(&self, name: &str) -> &Value {
        self.fields.get(name)
    }

    /// A text field, "" if it is not given. It converts a number or a boolean, which
    /// may be the value of a reference, to a text.
    pub fn text(&self, name: &str) -> Result<String> {
        match self.field(name) {
            Value::Null => Ok(String::new()),
            Value::Text(text) => Ok(text.clone()),
            value @ (Value::Number(_) | Value::Bool(_)) => Ok(value.to_json()),
            other => Err(Error::bad_field(name, &format!("want a text, got {}", other.kind()))),
        }
    }

    /// A whole number field of at least min. It converts a text of digits to a
    /// number.
    pub fn int(&self, name: &str, min: i64, fallback: i64) -> Result<i64> {
        let number = match self.field(name) {
            Value::Null => return Ok(fallback),
            Value::Text(text) => text.parse().ok(),
            other => other.as_i64(),
        };
        match number {
            Some(n) if n >= min => Ok(n),
            Some(n) => Err(Error::bad_field(name, &format!("want at least {}, got {}", min, n))),
            None => Err(Error::bad_field(name, &format!("want a whole number, got {}", self.field(name).kind()))),
        }
    }

    /// A boolean field.
    pub fn flag(&self, name: &str, fallback: bool) -> Result<bool> {
        match self.field(name) {
            Value::Null => Ok(fallback),
            Value::Bool(b) => Ok(*b),
            other => Err(Error::bad_field(name, &format!("want true or false, got {}", other.kind()))),
        }
    }

    /// A field that is a list of texts; None if it is not given.
    pub fn texts(&self, name: &str) -> Result<Option<Vec<String>>> {
        let value = self.field(name);
        if !value.given() {
            return Ok(None);
        }
        let wrong = || Error::bad_field(name, &format!("want a list of texts, got {}", value.kind()));
        value.as_texts().map(Some).ok_or_else(wrong)
    }

    /// The number of steps in a field with the mark `steps`.
    pub fn steps(&self, field: &str) -> i64 {
        self.field(field).get("count").as_i64().unwrap_or(0)
    }

    /// The number of branches in a field with the mark `branches`.
    pub fn branches(&self, field: &str) -> usize {
        self.field(field).get("counts").items().len()
    }

    /// Makes one host call, clause A6.1. Each method passes its own import, so that
    /// the linker omits those that a plugin does not use: the imports of a module then
    /// list everything that it can do.
    pub(super) fn call(&mut self, function: &str, import: kernel::Import, request: Value) -> Result<Value> {
        let answer = match &mut self.host {
            Some(host) => host.call(function, &request.to_json()),
            None => kernel::call(import, &request.to_json()),
        };
        let answer = parse(&answer).map_err(|e| Error::new(Code::Internal, format!("{}: answer: {}", function, e)))?;
        if let Some(error) = Error::from_value(answer.get("error")) {
            return Err(error);
        }
        let nothing = || Error::new(Code::Internal, format!("{}: answer: neither ok nor error", function));
        answer.find("ok").cloned().ok_or_else(nothing)
    }
}
