//! kit_call: each host function through its typed wrapper, with the answer rebuilt
//! from the result of the wrapper.

use crate::sentinel::{object, Code, Context, Error, Message, Replacement, Request, Result, Rule, Turn, Value, Wait, Watch};

pub fn run(ctx: &mut Context) -> Result<Value> {
    let args = ctx.field("args").clone();
    match call(ctx, &args) {
        Ok(answer) => Ok(object! { "ok" => answer }),
        Err(error) if ctx.flag("catch", false)? => Ok(object! { "error" => error.to_value() }),
        Err(error) => Err(error),
    }
}

fn call(ctx: &mut Context, args: &Value) -> Result<Value> {
    let text = |name: &str| args.get(name).text_or_empty();
    let given = |name: &str| args.find(name).cloned();
    match ctx.text("call")?.as_str() {
        "command" if text("by") == "model" => {
            let tools = args.get("tools").as_texts();
            ctx.tool_command(&text("command"), args.get("params").clone(), tools.as_deref())
        }
        "command" => ctx.command(&text("command"), args.get("params").clone()),
        "llm" => llm(ctx, args),
        "watch" => watch(ctx, args),
        "eval" => {
            let e = ctx.eval(&text("expression"), given("vars"))?;
            Ok(object! { "value" => e.value, "truthy" => e.truthy })
        }
        "var_get" => {
            let found = ctx.get_var(&text("name"))?;
            Ok(object! { "found" => found.is_some(), "value" => found })
        }
        "var_set" => ctx.set_vars(args.get("values").clone()).map(|_| Value::object()),
        "spawn" => {
            let started = match args.get("field").as_str() {
                Some(field) => ctx.spawn(field, given("inputs"))?,
                None => ctx.spawn_sentinel(&text("sentinel"), given("inputs"))?,
            };
            Ok(object! { "run" => started.run, "sentinel" => started.sentinel })
        }
        "emit" => Ok(object! { "id" => ctx.emit(&text("event"), given("data"))? }),
        "wait" => wait(ctx, args),
        "checkpoint" => ctx.checkpoint(args.get("state").clone()).map(|_| Value::object()),
        "http" => http(ctx, args),
        "file" => file(ctx, args),
        "log" => ctx.log(&text("level"), &text("message")).map(|_| Value::object()),
        "now" => {
            let now = ctx.now()?;
            Ok(object! { "unixMs" => now.unix_ms, "iso" => now.iso })
        }
        other => Err(Error::bad_field("call", &format!("unknown host call {}", Value::from(other)))),
    }
}

fn llm(ctx: &mut Context, args: &Value) -> Result<Value> {
    let text = |name: &str| args.get(name).as_str().map(str::to_string);
    let message = |m: &Value| match m.get("role").as_str() {
        Some("tool") => Message::Tool {
            call: m.get("toolCallId").text_or_empty(),
            name: m.get("name").text_or_empty(),
            content: m.get("content").text_or_empty(),
            is_error: m.get("isError").as_bool().unwrap_or(false),
        },
        _ => Message::user(m.get("content").text_or_empty()),
    };
    let replacement = |r: &Value| Replacement {
        from: r.get("from").as_i64().unwrap_or(0),
        to: r.get("to").as_i64().unwrap_or(0),
        with: r.get("with").items().iter().map(message).collect(),
    };
    let reply = ctx.llm(&Turn {
        conversation: text("conversation"),
        append: args.get("append").items().iter().map(message).collect(),
        system: text("system"),
        context: args.get("context").as_bool().unwrap_or(false),
        model: text("model"),
        temperature: args.get("temperature").as_number().cloned(),
        max_tokens: args.get("maxTokens").as_i64(),
        tools: args.get("tools").as_texts(),
        schema: args.find("schema").cloned(),
        replace: args.get("replace").items().iter().map(replacement).collect(),
        aside: args.get("aside").as_bool().unwrap_or(false),
    })?;
    let calls = reply.tool_calls.iter().map(|c| object! { "id" => &c.id, "name" => &c.name, "arguments" => &c.arguments });
    let usage = reply.usage;
    Ok(object! {
        "conversation" => reply.conversation, "text" => reply.text, "problems" => reply.problems,
        "toolCalls" => Value::List(calls.collect()), "finish" => reply.finish, "inputLimit" => reply.input_limit, "provider" => reply.provider, "model" => reply.model,
        "usage" => object! {
            "inputTokens" => usage.input_tokens, "outputTokens" => usage.output_tokens,
            "costUsd" => usage.cost_usd, "calls" => usage.calls,
        },
    }
    .with_some("json", reply.json))
}

fn watch(ctx: &mut Context, args: &Value) -> Result<Value> {
    let rule = |r: &Value| Rule {
        pattern: r.get("pattern").text_or_empty(),
        classification: r.get("classification").text_or_empty(),
        action: r.get("action").as_str().map(str::to_string),
    };
    let watched = ctx.watch(&Watch {
        execution: args.get("executionId").text_or_empty(),
        rules: args.find("rules").map(|rules| rules.items().iter().map(rule).collect()),
        until: args.get("until").as_str().map(str::to_string),
    })?;
    let lines = watched.lines.iter().map(|l| {
        object! {
            "text" => &l.text, "classification" => &l.classification, "lineNumber" => l.number,
            "stream" => &l.stream, "timestamp" => &l.timestamp,
        }
    });
    Ok(object! {
        "executionId" => watched.execution, "lines" => Value::List(lines.collect()), "text" => watched.text,
        "finished" => watched.finished, "dropped" => watched.dropped, "cursor" => watched.cursor,
    }
    .with_some("exitCode", watched.exit_code))
}

fn wait(ctx: &mut Context, args: &Value) -> Result<Value> {
    let text = |name: &str| args.get(name).as_str().map(str::to_string);
    let wait = if let Some(ms) = args.get("durationMs").as_i64() {
        Wait::Duration(ms)
    } else if let Some(moment) = text("until") {
        Wait::Until(moment)
    } else if let Some(pattern) = text("event") {
        Wait::Event(pattern)
    } else if let Some(run) = text("run") {
        Wait::Run(run)
    } else {
        let ask = args.get("decision");
        Wait::Decision { prompt: ask.get("prompt").text_or_empty(), approvers: ask.get("approvers").as_texts().unwrap_or_default(), call_kind: ask.get("callKind").as_str().map(str::to_string) }
    };
    let waited = ctx.wait(&wait, args.get("timeoutMs").as_i64())?;
    let decision = waited.decision.map(|d| {
        let verdict = if d.approved { "approve" } else { "reject" };
        object! { "verdict" => verdict, "by" => d.by, "at" => d.at }.with_some("comment", d.comment)
    });
    let answer = object! { "timedOut" => waited.timed_out }.with_some("event", waited.event);
    Ok(answer.with_some("result", waited.result).with_some("decision", decision))
}

fn http(ctx: &mut Context, args: &Value) -> Result<Value> {
    let headers = args.get("headers").fields().iter();
    let response = ctx.http(&Request {
        method: args.get("method").as_str().map(str::to_string),
        url: args.get("url").text_or_empty(),
        headers: headers.map(|(name, value)| (name.clone(), value.text_or_empty())).collect(),
        body: args.get("body").as_str().map(str::to_string),
        body_secrets: args.get("bodySecrets").as_bool().unwrap_or(false),
        timeout_ms: args.get("timeoutMs").as_i64(),
    })?;
    whole(response.bytes())?;
    let answer = object! { "status" => response.status, "headers" => response.headers, "body" => response.body, "truncated" => response.truncated };
    Ok(answer.with_some("encoding", Some("base64").filter(|_| response.base64)))
}

fn file(ctx: &mut Context, args: &Value) -> Result<Value> {
    let (folder, path) = (args.get("folder").text_or_empty(), args.get("path").text_or_empty());
    let offset = args.get("offset").as_i64().unwrap_or(0);
    match args.get("op").as_str().unwrap_or("") {
        "read" => {
            let part = ctx.read_file(&folder, &path, offset, args.get("length").as_i64())?;
            whole(part.bytes())?;
            let answer = object! { "text" => part.text, "size" => part.size, "truncated" => part.truncated };
            Ok(answer.with_some("encoding", Some("base64").filter(|_| part.base64)))
        }
        "write" => {
            let text = args.get("text").text_or_empty();
            let size = match args.get("encoding").as_str() {
                Some(_) => {
                    let bytes = crate::sentinel::decode(&text).ok_or_else(|| Error::bad_field("args.text", "want base64"))?;
                    ctx.write_bytes(&folder, &path, &bytes)?
                }
                None => ctx.write_file(&folder, &path, &text)?,
            };
            Ok(object! { "size" => size })
        }
        "list" => {
            let listing = ctx.list_files(&folder, &path, offset)?;
            let entries = listing.entries.iter().map(|e| object! { "name" => &e.name, "dir" => e.dir, "size" => e.size, "modified" => &e.modified });
            Ok(object! { "entries" => Value::List(entries.collect()), "truncated" => listing.truncated })
        }
        "stat" => Ok(match ctx.stat_file(&folder, &path)? {
            Some(stat) => object! { "exists" => true, "dir" => stat.dir, "size" => stat.size, "modified" => stat.modified },
            None => object! { "exists" => false },
        }),
        "remove" => ctx.remove_file(&folder, &path).map(|_| Value::object()),
        other => Err(Error::bad_field("args.op", &format!("unknown operation {}", Value::from(other)))),
    }
}

/// An invalid base64 text is a fault of the host.
fn whole(bytes: Option<Vec<u8>>) -> Result<()> {
    bytes.map(|_| ()).ok_or_else(|| Error::new(Code::Internal, "an answer is not base64"))
}
