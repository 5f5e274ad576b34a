//! The calls with small answers: A6.6, A6.7, A6.9, A6.10, A6.12, A6.14, A6.15.

use super::{kernel, object, Context, Result, Value};

/// The result of an expression.
pub struct Evaluated {
    pub value: Value,
    pub truthy: bool,
}

/// A run that was started.
pub struct Spawned {
    pub run: String,
    pub sentinel: String,
}

/// The host's time.
pub struct Now {
    /// Milliseconds since 1970.
    pub unix_ms: i64,
    /// RFC 3339.
    pub iso: String,
}

impl Context<'_> {
    /// Evaluates a JavaScript condition over the variables of the step's scope;
    /// vars, an object, shadow them. A source that does not parse, throws or takes
    /// too long is an error, never false.
    pub fn eval(&mut self, expression: &str, vars: Option<Value>) -> Result<Evaluated> {
        let request = object! { "expression" => expression }.with_some("vars", vars);
        let answer = self.call("sentinel_eval", kernel::sentinel_eval, request)?;
        Ok(Evaluated { value: answer.get("value").clone(), truthy: answer.get("truthy").as_bool().unwrap_or(false) })
    }

    /// Reads a variable of the step's scope by its path, `build.lines[0]`.
    pub fn get_var(&mut self, path: &str) -> Result<Option<Value>> {
        let answer = self.call("sentinel_var", kernel::sentinel_var, object! { "get" => path })?;
        Ok(answer.get("found").as_bool().filter(|found| *found).map(|_| answer.get("value").clone()))
    }

    pub fn set_var(&mut self, name: &str, value: Value) -> Result<()> {
        self.set_vars(Value::object().with(name, value))
    }

    /// Sets the variables that an object has.
    pub fn set_vars(&mut self, values: Value) -> Result<()> {
        self.call("sentinel_var", kernel::sentinel_var, object! { "set" => values })?;
        Ok(())
    }

    /// Starts a child run of the definition in a field with the mark `definition`,
    /// exactly once, and does not wait for it: see
    /// [`Context::wait_run`].
    pub fn spawn(&mut self, field: &str, inputs: Option<Value>) -> Result<Spawned> {
        self.spawn_as(object! { "field" => field }.with_some("inputs", inputs))
    }

    /// Starts a child run of the sentinel with that id.
    pub fn spawn_sentinel(&mut self, id: &str, inputs: Option<Value>) -> Result<Spawned> {
        self.spawn_as(object! { "sentinel" => id }.with_some("inputs", inputs))
    }

    fn spawn_as(&mut self, request: Value) -> Result<Spawned> {
        let answer = self.call("sentinel_spawn", kernel::sentinel_spawn, request)?;
        Ok(Spawned { run: answer.get("run").text_or_empty(), sentinel: answer.get("sentinel").text_or_empty() })
    }

    /// Publishes an event and returns its id. Another attempt of the step emits the
    /// same event, not a second one.
    pub fn emit(&mut self, event: &str, data: Option<Value>) -> Result<String> {
        let answer = self.call("sentinel_emit", kernel::sentinel_emit, object! { "event" => event }.with_some("data", data))?;
        Ok(answer.get("id").text_or_empty())
    }

    /// Limits what a replay of this attempt repeats: the next replay starts with this
    /// in [`Context::state`] and must continue from there. Long loops call it after
    /// each iteration.
    pub fn checkpoint(&mut self, state: Value) -> Result<()> {
        self.call("sentinel_checkpoint", kernel::sentinel_checkpoint, object! { "state" => state })?;
        Ok(())
    }

    /// The time. It is recorded: a replay returns the same.
    pub fn now(&mut self) -> Result<Now> {
        let answer = self.call("sentinel_now", kernel::sentinel_now, Value::object())?;
        Ok(Now { unix_ms: answer.get("unixMs").as_i64().unwrap_or(0), iso: answer.get("iso").text_or_empty() })
    }

    /// Writes a line to the run log, for the author of the step. Logging never fails a
    /// step: the host drops and counts lines above the limit.
    pub fn debug(&mut self, message: &str) {
        let _ = self.log("debug", message);
    }

    /// A line for users who follow the run.
    pub fn info(&mut self, message: &str) {
        let _ = self.log("info", message);
    }

    /// A line that needs attention.
    pub fn warn(&mut self, message: &str) {
        let _ = self.log("warn", message);
    }

    /// Logs at a level, `debug`, `info`, `warn` or `error`, and returns the result.
    pub fn log(&mut self, level: &str, message: &str) -> Result<()> {
        self.call("sentinel_log", kernel::sentinel_log, object! { "level" => level, "message" => message })?;
        Ok(())
    }
}
