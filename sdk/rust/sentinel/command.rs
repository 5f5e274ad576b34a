//! Commands of the host, clause A6.3.

use super::{kernel, object, Context, Result, Value};

impl Context<'_> {
    /// Calls a command. A command that ran and found a failure returns a result, often
    /// with success false; an error means that it could not run. Null params are
    /// omitted.
    pub fn command(&mut self, name: &str, params: Value) -> Result<Value> {
        let request = object! { "command" => name }.with_some("params", Some(params).filter(Value::given));
        self.call("sentinel_command", kernel::sentinel_command, request)
    }

    /// Calls a command that a model has requested. The host checks the call against
    /// tools, names and patterns (None: all public commands), converts and validates
    /// the arguments, and protects files that configure tools.
    pub fn tool_command(&mut self, name: &str, arguments: Value, tools: Option<&[String]>) -> Result<Value> {
        let request = object! { "command" => name }.with_some("params", Some(arguments).filter(Value::given));
        let request = request.with("by", "model").with_some("tools", tools);
        self.call("sentinel_command", kernel::sentinel_command, request)
    }
}
