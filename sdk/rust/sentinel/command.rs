//! Commands of the host, clause A6.3.

use super::{kernel, object, Context, Result, Value};

impl Context<'_> {
    /// Calls a command. One that ran and found something bad is a result, often
    /// with success false; an error means that it could not run. Null params are
    /// none.
    pub fn command(&mut self, name: &str, params: Value) -> Result<Value> {
        let request = object! { "command" => name }.with_some("params", Some(params).filter(Value::given));
        self.call("sentinel_command", kernel::sentinel_command, request)
    }

    /// Calls a command as the wish of a model. The host holds the call to tools,
    /// names and patterns (None: every public command), reads arguments
    /// generously and then checks them, and protects the files that steer tools.
    pub fn tool_command(&mut self, name: &str, arguments: Value, tools: Option<&[String]>) -> Result<Value> {
        let request = object! { "command" => name }.with_some("params", Some(arguments).filter(Value::given));
        let request = request.with("by", "model").with_some("tools", tools);
        self.call("sentinel_command", kernel::sentinel_command, request)
    }
}
