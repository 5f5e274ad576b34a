//! The conformance guest of this SDK, which the ABI kit tests; sdk/abitest/GUEST.md
//! specifies it.

#[path = "sdk/mod.rs"]
mod sentinel;

mod calls;

use sentinel::{object, Permission, Block, BlockOptions, Context, Error, Plugin, Problem, Result, Step, Value, ABI};

pub fn plugin() -> Plugin {
    Plugin::new("conformance", "1.0.0")
        .permission(Permission::command(&["*"], "to call the commands that the kit names"))
        .permission(Permission::llm(&[], "to make the turns that the kit names"))
        .permission(Permission::watch("to watch the executions that the kit names"))
        .permission(Permission::spawn(&["*"], "to start the sentinels that the kit names"))
        .permission(Permission::emit(&[], "to publish the events that the kit names"))
        .permission(Permission::http(&["*.example.com"], "to make the requests that the kit names"))
        .permission(Permission::folder(&["data:rw"], "to read and write the files that the kit names"))
        .permission(Permission::secret(&["TOKEN"], "to send it with requests"))
        .permission(Permission::provide(&["command"], "to be called by name"))
        .step(Step::new("kit_echo", "Gives back its input.", ECHO, echo).infer(&["echo"]).aliases(&[("say", "echo")]).read_only().validate(check)
            .output(r#"{"type": "object"}"#).command("conformance/echo"))
        .step(Step::new("kit_fail", "Ends with an error.", FAIL, fail))
        .step(Step::new("kit_call", "Makes one host call.", CALL, calls::run))
        .step(Step::new("kit_blocks", "Runs its steps several times.", BLOCKS, blocks))
        .step(Step::new("kit_pages", "Goes through pages with checkpoints.", PAGES, pages))
}

const ECHO: &str = r#"{"type": "object", "properties": {"echo": {}}, "required": ["echo"], "additionalProperties": false}"#;

const FAIL: &str = r#"{"type": "object", "properties": {"error": {"type": "object"}, "panic": {"type": "string"}}, "additionalProperties": false}"#;

const CALL: &str = r#"{"type": "object",
  "properties": {"call": {"type": "string"}, "args": {"type": "object"}, "catch": {"type": "boolean"}},
  "required": ["call", "args"], "additionalProperties": false}"#;

const BLOCKS: &str = r#"{"type": "object",
  "properties": {"steps": {"type": "array", "x-sentinel": "steps"}, "count": {"type": "integer"}, "concurrency": {"type": "integer"}, "failFast": {"type": "boolean"}, "drain": {"type": "boolean"}, "isolated": {"type": "boolean"}, "total": {"type": "integer"}},
  "required": ["steps"], "additionalProperties": false}"#;

const PAGES: &str = r#"{"type": "object", "properties": {"pages": {"type": "integer"}}, "required": ["pages"], "additionalProperties": false}"#;

fn echo(ctx: &mut Context) -> Result<Value> {
    let output = object! {
        "echo" => ctx.field("echo"), "type" => &ctx.step_type, "id" => ctx.id.clone(), "name" => ctx.name.clone(),
        "address" => &ctx.address, "path" => &ctx.path, "abi" => ABI, "attempt" => ctx.attempt, "iteration" => ctx.iteration,
        "run" => &ctx.run, "sentinel" => &ctx.sentinel, "workspace" => &ctx.workspace, "key" => &ctx.key,
    };
    let retry = ctx.retry.as_ref().map(|r| object! { "attempts" => r.attempts, "code" => r.error.code.as_str(), "category" => &r.category });
    Ok(output.with_some("retry", retry).with_some("state", ctx.state.as_ref()))
}

fn check(fields: &Value) -> Vec<Problem> {
    if fields.get("echo").as_str() == Some("bad") {
        return vec![Problem::new("echo", "is bad").hint("use good")];
    }
    Vec::new()
}

fn fail(ctx: &mut Context) -> Result<Value> {
    if let Some(text) = ctx.field("panic").as_str() {
        panic!("{}", text);
    }
    Err(Error::from_value(ctx.field("error")).unwrap_or_else(|| Error::bad_field("error", "is not given")))
}

fn blocks(ctx: &mut Context) -> Result<Value> {
    let count = ctx.int("count", 1, 1)?;
    let options = BlockOptions { fail_fast: ctx.flag("failFast", false)?, concurrency: ctx.int("concurrency", 0, 0)?, drain: ctx.flag("drain", false)?, isolated: ctx.flag("isolated", false)?, total: ctx.int("total", 0, 0)? };
    let wanted: Vec<Block> = (0..count).map(|i| Block { field: "steps".to_string(), vars: Some(object! { "i" => i }) }).collect();
    let mut shown = Vec::new();
    for result in ctx.blocks(&wanted, options)? {
        let error = result.error.as_ref().map(|e| object! { "code" => e.code.as_str(), "message" => &e.message });
        shown.push(object! { "success" => result.success, "output" => result.output }.with_some("error", error).with_some("skipped", Some(true).filter(|_| result.skipped)));
    }
    Ok(object! { "blocks" => Value::List(shown), "steps" => ctx.steps("steps") })
}

fn pages(ctx: &mut Context) -> Result<Value> {
    let pages = ctx.int("pages", 0, 0)?;
    let state = ctx.state.clone().unwrap_or(Value::Null);
    let number = |name: &str| state.get(name).as_i64().unwrap_or(0);
    let (from, mut sum) = (number("next"), number("sum"));
    for page in from..pages {
        ctx.info(&format!("page {}", page));
        sum += ctx.command("kit/page", object! { "page" => page })?.get("value").as_i64().unwrap_or(0);
        ctx.checkpoint(object! { "next" => page + 1, "sum" => sum })?;
    }
    Ok(object! { "sum" => sum, "from" => from })
}
