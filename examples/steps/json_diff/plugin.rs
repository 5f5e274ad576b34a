//! The step json_diff: what must be done to one JSON value to make it another,
//! as operations of JSON Patch (RFC 6902) and as lines that a person reads.

#[path = "sdk/mod.rs"]
mod sentinel;

mod diff;
mod pointer;
#[cfg(test)]
mod tests;

use diff::{Arrays, Diff};
use sentinel::{object, parse, Context, Error, Plugin, Problem, Result, Step, Value};

const FIELDS: &str = r#"{
  "type": "object",
  "properties": {
    "from": {"description": "The value as it was."},
    "to": {"description": "The value as it is."},
    "parse": {"type": "boolean", "default": false, "description": "Texts in from and to are JSON, such as the output of a command."},
    "ignore": {"type": "array", "items": {"type": "string", "minLength": 1}, "description": "Paths that do not count: /items/*/updated, where * is one step and ** any number; a name without / is a field anywhere."},
    "arrays": {"type": "string", "enum": ["align", "index", "set", "key"], "default": "align", "description": "How lists are compared: align finds what was put in or taken out, index compares place by place, set does not look at the order, key pairs objects by their field `key`."},
    "key": {"type": "string", "minLength": 1, "description": "With arrays key: the field that says which object is which."},
    "limit": {"type": "integer", "minimum": 1, "maximum": 10000, "default": 1000, "description": "The most operations that are written; all are counted."}
  },
  "required": ["from", "to"],
  "additionalProperties": false
}"#;

pub fn plugin() -> Plugin {
    let step = Step::new("json_diff", "Says what is different between two JSON values.", FIELDS, run).read_only().validate(check);
    Plugin::new("json_diff", "1.0.0").stateless().step(step)
}

fn check(fields: &Value) -> Vec<Problem> {
    let by_key = fields.get("arrays").as_str() == Some("key");
    match (by_key, fields.get("key").given()) {
        (true, false) => vec![Problem::new("key", "is needed with \"arrays\": \"key\"").hint("name the field that says which object is which, such as \"id\"")],
        (false, true) => vec![Problem::new("key", "counts only with \"arrays\": \"key\"").hint("set arrays, or leave key out")],
        _ => vec![],
    }
}

fn run(ctx: &mut Context) -> Result<Value> {
    if let Some(problem) = check(&ctx.fields).into_iter().next() {
        return Err(problem.into());
    }
    let arrays = match ctx.text("arrays")?.as_str() {
        "index" => Arrays::Index,
        "set" => Arrays::Set,
        "key" => Arrays::Key(ctx.text("key")?),
        _ => Arrays::Align,
    };
    let parsed = ctx.flag("parse", false)?;
    let (from, to) = (side(ctx, "from", parsed)?, side(ctx, "to", parsed)?);
    let mut diff = Diff::new(arrays, ctx.texts("ignore")?.unwrap_or_default(), ctx.int("limit", 1, 1000)? as usize);
    diff.compare(&from, &to);
    let counts = object! { "added" => diff.added, "removed" => diff.removed, "changed" => diff.changed };
    let total = diff.added + diff.removed + diff.changed;
    let mut text = diff.lines.join("\n");
    if diff.operations.len() < total {
        text += &format!("\n... and {} more", total - diff.operations.len());
    }
    Ok(object! {
        "equal" => total == 0,
        "truncated" => diff.operations.len() < total,
        "operations" => Value::List(diff.operations),
        "counts" => counts,
        "text" => if total == 0 { "no difference".to_string() } else { text },
    })
}

/// One of the values. With parse a text is read; one that is not JSON is an error with its position.
fn side(ctx: &Context, name: &str, parsed: bool) -> Result<Value> {
    match ctx.field(name) {
        Value::Text(text) if parsed => parse(text).map_err(|e| Error::bad_field(name, &e.to_string())),
        value => Ok(value.clone()),
    }
}
