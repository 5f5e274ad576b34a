//! The step plugin {{name}}: it provides the step type {{name}}.

#[path = "sdk/mod.rs"]
mod sentinel;

use sentinel::{object, Context, Error, Plugin, Result, Step, Value};

/// The JSON Schema of the step's own fields. Editors use it for completion, and the
/// host checks definitions against it.
const FIELDS: &str = r#"{
  "type": "object",
  "properties": {
    "text": {"type": "string", "description": "The text to change."},
    "times": {"type": "integer", "minimum": 1, "default": 1, "description": "How often the mark is put behind it."}
  },
  "required": ["text"],
  "additionalProperties": false
}"#;

/// The description of this module, which the host reads first.
pub fn plugin() -> Plugin {
    Plugin::new("{{name}}", "0.1.0").step(Step::new("{{name}}", "Writes a text in capital letters.", FIELDS, run).read_only())
}

/// Executes one step. The result becomes the value of outputTo.
fn run(ctx: &mut Context) -> Result<Value> {
    let text = ctx.text("text")?;
    let times = ctx.int("times", 1, 1)?;
    if times > 100 {
        return Err(Error::bad_field("times", "want at most 100"));
    }
    ctx.info(&format!("changing {}", text));
    Ok(object! { "text" => text.to_uppercase() + &"!".repeat(times as usize) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sentinel::testing::{self, Script};

    #[test]
    fn writes_capital_letters() {
        let mut host = Script::new().answer("sentinel_log", Value::object());
        let output = testing::run(&plugin(), "{{name}}", object! { "text" => "hey", "times" => 3 }, &mut host);
        assert_eq!(output, Ok(object! { "text" => "HEY!!!" }));
        assert_eq!(host.left(), 0);
    }

    #[test]
    fn refuses_too_many() {
        let output = testing::run(&plugin(), "{{name}}", object! { "text" => "hey", "times" => 1000 }, &mut Script::new());
        assert_eq!(output.unwrap_err().field.as_deref(), Some("times"));
    }

    #[test]
    fn describes_itself() {
        plugin().manifest().unwrap();
    }
}
