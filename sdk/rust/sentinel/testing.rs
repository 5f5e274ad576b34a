//! A fake host for native tests:
//!
//! ```ignore
//! let mut host = Script::new().answer("sentinel_command", object! { "text" => "hello" });
//! let output = run(&plugin(), "shout", object! { "path" => "a.txt" }, &mut host)?;
//! ```

use super::{object, parse, Error, Plugin, Result, Value, ABI};

/// Answers host calls instead of a runtime.
pub trait Host {
    /// Gets the name of a host function and the text of a request, and returns the text
    /// of the answer, clause A6.1.
    fn call(&mut self, function: &str, request: &str) -> String;
}

/// A host with scripted answers. Those of one function are used in order; a call
/// without an answer is refused as `denied`.
#[derive(Default)]
pub struct Script {
    answers: Vec<(&'static str, Value)>,
    /// The calls in order: function and request.
    pub asked: Vec<(String, Value)>,
}

impl Script {
    pub fn new() -> Script {
        Script::default()
    }

    /// Answers the next call of a function with this value.
    pub fn answer(mut self, function: &'static str, ok: impl Into<Value>) -> Script {
        self.answers.push((function, object! { "ok" => ok.into() }));
        self
    }

    /// Answers the next call of a function with this error.
    pub fn refuse(mut self, function: &'static str, error: Error) -> Script {
        self.answers.push((function, object! { "error" => error.to_value() }));
        self
    }

    /// The number of unused answers: 0 at the end of a good test.
    pub fn left(&self) -> usize {
        self.answers.len()
    }
}

impl Host for Script {
    fn call(&mut self, function: &str, request: &str) -> String {
        self.asked.push((function.to_string(), parse(request).expect("a request is JSON")));
        match self.answers.iter().position(|(name, _)| *name == function) {
            Some(at) => self.answers.remove(at).1.to_json(),
            None => Error::new(super::Code::Denied, format!("the test has no answer for {}", function)).to_json(),
        }
    }
}

impl Error {
    fn to_json(&self) -> String {
        object! { "error" => self.to_value() }.to_json()
    }
}

/// A run input with these fields and example values for the rest; a test may set
/// `attempt`, `retry` or `state` in it.
pub fn input(step_type: &str, fields: Value) -> Value {
    object! {
        "abi" => ABI,
        "step" => object! { "type" => step_type, "address" => "0", "path" => "1#1", "fields" => fields },
        "run" => object! { "id" => "run", "sentinel" => "test", "iteration" => 1, "workspace" => "/workspace", "key" => "key" },
        "attempt" => 1,
    }
}

/// Executes one step and returns its output.
pub fn run(plugin: &Plugin, step_type: &str, fields: Value, host: &mut dyn Host) -> Result<Value> {
    let output = plugin.run(&input(step_type, fields).to_json(), Some(host))?;
    Ok(parse(&output)?.get("output").clone())
}
