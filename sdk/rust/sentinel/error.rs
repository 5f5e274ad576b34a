//! Errors with a code, clause A5.

use super::Value;

/// The result of a host call and of a step.
pub type Result<T> = std::result::Result<T, Error>;

/// The kind of an error. The list is that of the host; an unknown code becomes
/// [`Code::Plugin`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Code {
    /// A step's fields or a call's parameters violate their schema.
    BadFields,
    /// No grant, not on the allow-list, outside the workspace.
    Denied,
    NotFound,
    /// A stale revision, a name that is taken.
    Conflict,
    Timeout,
    /// The run was stopped, or a branch failed with fail_fast.
    Cancelled,
    /// Network, rate limit, server error: a retry may help.
    Unavailable,
    /// A limit that the message names.
    Limit,
    Trap,
    Memory,
    Output,
    /// An error from the plugin.
    Plugin,
    /// In doubt after a crash, and the decision was to fail.
    Interrupted,
    /// A fault of the host.
    Internal,
}

/// The codes with their names in the ABI.
const CODES: [(Code, &str); 14] = [
    (Code::BadFields, "bad_fields"),
    (Code::Denied, "denied"),
    (Code::NotFound, "not_found"),
    (Code::Conflict, "conflict"),
    (Code::Timeout, "timeout"),
    (Code::Cancelled, "cancelled"),
    (Code::Unavailable, "unavailable"),
    (Code::Limit, "limit"),
    (Code::Trap, "trap"),
    (Code::Memory, "memory"),
    (Code::Output, "output"),
    (Code::Plugin, "plugin"),
    (Code::Interrupted, "interrupted"),
    (Code::Internal, "internal"),
];

impl Code {
    /// Its name in the ABI.
    pub fn as_str(self) -> &'static str {
        CODES.iter().find(|(code, _)| *code == self).map_or("plugin", |(_, name)| name)
    }

    /// An unknown name is an error from the plugin, clause A5.1.
    pub fn from_name(name: &str) -> Code {
        CODES.iter().find(|(_, other)| *other == name).map_or(Code::Plugin, |(code, _)| *code)
    }
}

/// An error object of the ABI; its parts are those of [`Parts`]. `?` returns the error
/// of a host call.
#[derive(Clone, Debug, PartialEq)]
pub struct Error(Box<Parts>); // in a box: a result is handed on everywhere

/// The parts of an error.
#[derive(Clone, Debug, PartialEq)]
pub struct Parts {
    pub code: Code,
    pub message: String,
    /// The path of the invalid field, `params.command`.
    pub field: Option<String>,
    /// The delay that a server has requested, in milliseconds.
    pub retry_after_ms: Option<i64>,
    /// A retry cannot help, for any code.
    pub permanent: bool,
    /// What to do next, for users; on a separate line.
    pub hint: Option<String>,
}

/// Gives access to `error.code` and the other parts.
impl std::ops::Deref for Error {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl std::ops::DerefMut for Error {
    fn deref_mut(&mut self) -> &mut Parts {
        &mut self.0
    }
}

impl Error {
    pub fn new(code: Code, message: impl Into<String>) -> Error {
        Error::made(code, message.into())
    }

    #[inline(never)]
    fn made(code: Code, message: String) -> Error {
        Error(Box::new(Parts { code, message, field: None, retry_after_ms: None, permanent: false, hint: None }))
    }

    /// An invalid field of the step.
    #[inline(never)]
    pub fn bad_field(field: &str, message: &str) -> Error {
        let mut error = Error::new(Code::BadFields, format!("{}: {}", field, message)).permanent();
        error.field = Some(field.to_string());
        error
    }

    /// A retry cannot help.
    pub fn permanent(mut self) -> Error {
        self.permanent = true;
        self
    }

    /// Sets the delay before the next attempt, as a server has requested it.
    pub fn retry_after(mut self, ms: i64) -> Error {
        self.retry_after_ms = Some(ms);
        self
    }

    pub fn hint(mut self, hint: &str) -> Error {
        self.hint = Some(hint.to_string());
        self
    }

    /// Adds a prefix to the message and keeps the rest.
    pub fn context(mut self, op: &str) -> Error {
        self.message = format!("{}: {}", op, self.message);
        self
    }

    /// The error object.
    pub fn to_value(&self) -> Value {
        let value = Value::object().with("code", self.code.as_str()).with("message", &self.message).with_some("field", self.field.as_ref());
        let value = value.with_some("retryAfterMs", self.retry_after_ms);
        let value = if self.permanent { value.with("permanent", true) } else { value };
        value.with_some("hint", self.hint.as_ref())
    }

    /// Reads an error object; None for null.
    pub fn from_value(value: &Value) -> Option<Error> {
        if !value.given() {
            return None;
        }
        let text = |name: &str| value.get(name).as_str().map(str::to_string);
        Some(Error(Box::new(Parts {
            code: Code::from_name(value.get("code").as_str().unwrap_or("")),
            message: text("message").unwrap_or_else(|| "unknown error".to_string()),
            field: text("field"),
            retry_after_ms: value.get("retryAfterMs").as_i64(),
            permanent: value.get("permanent").as_bool().unwrap_or(false),
            hint: text("hint"),
        })))
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// A text becomes an error from the plugin: `Err("not found")?`.
impl From<&str> for Error {
    fn from(message: &str) -> Error {
        Error::new(Code::Plugin, message)
    }
}

impl From<String> for Error {
    fn from(message: String) -> Error {
        Error::new(Code::Plugin, message)
    }
}

/// For `parse(text)?`: an invalid text is an error from the plugin.
impl From<super::SyntaxError> for Error {
    fn from(e: super::SyntaxError) -> Error {
        Error::new(Code::Plugin, e.to_string())
    }
}
