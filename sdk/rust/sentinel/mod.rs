//! The library for writing step plugins of Sentinel in Rust. It uses no crates, so that
//! one call of rustc builds a plugin.
//!
//! The source of a plugin begins like this and has the function `plugin`; this library
//! defines the exports that the host calls.
//!
//! ```ignore
//! #[path = "sdk/mod.rs"]
//! mod sentinel;
//! use sentinel::{object, Context, Plugin, Result, Step, Value};
//!
//! pub fn plugin() -> Plugin {
//!     Plugin::new("shout", "1.0.0").step(Step::new("shout", "Says a text loudly.", FIELDS, shout))
//! }
//!
//! fn shout(ctx: &mut Context) -> Result<Value> {
//!     Ok(object! { "text" => ctx.text("text")?.to_uppercase() })
//! }
//! ```
//!
//! The module must be named `sentinel` and be at the root of the crate.
//!
//! Numbers such as A6.3 in comments are clauses of the plugin ABI.

// Functions that a plugin does not use are not in its module.
#![allow(dead_code, unused_imports, unused_macros)]

mod base64;
mod block;
mod command;
mod context;
mod convert;
mod error;
mod export;
mod file;
mod http;
mod kernel;
mod llm;
mod manifest;
mod number;
mod parse;
mod plugin;
mod print;
mod small;
pub mod testing;
mod value;
mod wait;
mod watch;

pub use base64::{decode, encode};
pub use block::{Block, BlockOptions, BlockResult};
pub use context::{Context, Retry};
pub use error::{Code, Error, Parts, Result};
pub use file::{Entry, FilePart, Listing, Stat};
pub use http::{Request, Response};
pub use llm::{Message, Replacement, Reply, ToolCall, Turn, Usage};
pub use number::Number;
pub use parse::{parse, SyntaxError, MAX_DEPTH};
pub use plugin::{Permission, Plugin, Problem, Role, Step};
pub use small::{Evaluated, Now, Spawned};
pub use value::Value;
pub use wait::{Decision, Wait, Waited};
pub use watch::{Line, Rule, Watch, Watched};

/// The version of the ABI.
pub const ABI: i64 = 1;

/// Returns an object of fields in this order: `object! { "n" => 1, "text" => t }`.
macro_rules! object {
    ($($name:expr => $value:expr),* $(,)?) => {
        {
            #[allow(unused_mut)]
            let mut object = $crate::sentinel::Value::object();
            $(object.put($name, $crate::sentinel::Value::from($value));)*
            object
        }
    };
}
pub(crate) use object;

/// Returns a list: `list![1, "two", Value::Null]`.
macro_rules! list {
    ($($value:expr),* $(,)?) => {
        $crate::sentinel::Value::List(vec![$($crate::sentinel::Value::from($value)),*])
    };
}
pub(crate) use list;
