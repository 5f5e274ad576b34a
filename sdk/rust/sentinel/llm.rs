//! Turns of language models, clause A6.4.

use super::{kernel, object, Context, Number, Result, Value};

/// One request to a model. The host stores the conversation: the first turn names
/// none, and later ones append only new messages.
#[derive(Default)]
pub struct Turn {
    /// From the reply before; None starts a conversation.
    pub conversation: Option<String>,
    pub append: Vec<Message>,
    /// Only in the first turn.
    pub system: Option<String>,
    /// Only in the first turn: the host adds `$ragContext` and the accumulated
    /// variables to the system text.
    pub context: bool,
    /// `provider/name`; None for the configured one.
    pub model: Option<String>,
    /// As text, `"0.2".parse()`, or from an f64: reading and writing those adds
    /// 54 KB to a module.
    pub temperature: Option<Number>,
    pub max_tokens: Option<i64>,
    /// Names and patterns of commands; None offers none.
    pub tools: Option<Vec<String>>,
    /// JSON Schema of the reply.
    pub schema: Option<Value>,
    /// Replacements of messages that the conversation has, in their order, made before
    /// `append`: they keep it within the window of its model.
    pub replace: Vec<Replacement>,
    /// Answers without a change of the conversation.
    pub aside: bool,
}

/// Puts other messages in the place of those from `from` up to `to`, counted from 0. The
/// result of a tool stays behind the call that it belongs to.
pub struct Replacement {
    pub from: i64,
    pub to: i64,
    pub with: Vec<Message>,
}

impl Turn {
    /// A conversation that starts with this text.
    pub fn user(text: impl Into<String>) -> Turn {
        Turn { append: vec![Message::user(text)], ..Turn::default() }
    }
}

/// An entry that a turn adds to a conversation.
pub enum Message {
    User(String),
    /// The result of a tool call of the model.
    Tool { call: String, name: String, content: String, is_error: bool },
}

impl Message {
    pub fn user(text: impl Into<String>) -> Message {
        Message::User(text.into())
    }

    fn list(messages: &[Message]) -> Value {
        Value::List(messages.iter().map(Message::to_value).collect())
    }

    fn to_value(&self) -> Value {
        match self {
            Message::User(text) => object! { "role" => "user", "content" => text },
            Message::Tool { call, name, content, is_error } => {
                let message = object! { "role" => "tool", "content" => content, "toolCallId" => call, "name" => name };
                message.with_some("isError", Some(true).filter(|_| *is_error))
            }
        }
    }
}

/// The response of the model.
pub struct Reply {
    pub conversation: String,
    /// Without the text of tool calls.
    pub text: String,
    /// The text read as JSON, if it is an object or a list, or any JSON if a schema
    /// was given.
    pub json: Option<Value>,
    /// Violations of the schema.
    pub problems: Vec<String>,
    pub tool_calls: Vec<ToolCall>,
    /// `stop`, `tools` or `length`.
    pub finish: String,
    /// Tokens that a turn may have beside its reply; 0 if the host does not know that.
    pub input_limit: i64,
    pub usage: Usage,
    pub provider: String,
    pub model: String,
}

/// A model's request to run a command.
pub struct ToolCall {
    pub id: String,
    pub name: String,
    pub arguments: Value,
}

/// The tokens and the cost of turns.
#[derive(Clone)]
pub struct Usage {
    pub input_tokens: i64,
    pub output_tokens: i64,
    pub cost_usd: Number,
    pub calls: i64,
}

impl Context<'_> {
    /// Sends one turn.
    pub fn llm(&mut self, turn: &Turn) -> Result<Reply> {
        let replace = turn.replace.iter().map(|r| object! { "from" => r.from, "to" => r.to, "with" => Message::list(&r.with) });
        let replace = Value::List(replace.collect());
        let request = Value::object()
            .with_some("conversation", turn.conversation.as_ref())
            .with("append", Message::list(&turn.append))
            .with_some("system", turn.system.as_ref())
            .with_some("context", Some(true).filter(|_| turn.context))
            .with_some("model", turn.model.as_ref())
            .with_some("temperature", turn.temperature.as_ref())
            .with_some("maxTokens", turn.max_tokens)
            .with_some("tools", turn.tools.as_deref())
            .with_some("schema", turn.schema.as_ref())
            .with_some("replace", Some(replace).filter(|_| !turn.replace.is_empty()))
            .with_some("aside", Some(true).filter(|_| turn.aside));
        let answer = self.call("sentinel_llm", kernel::sentinel_llm, request)?;
        let call = |call: &Value| ToolCall {
            id: call.get("id").text_or_empty(),
            name: call.get("name").text_or_empty(),
            arguments: call.get("arguments").clone(),
        };
        let usage = answer.get("usage");
        Ok(Reply {
            conversation: answer.get("conversation").text_or_empty(),
            text: answer.get("text").text_or_empty(),
            json: answer.find("json").cloned(),
            problems: answer.get("problems").as_texts().unwrap_or_default(),
            tool_calls: answer.get("toolCalls").items().iter().map(call).collect(),
            finish: answer.get("finish").as_str().unwrap_or("stop").to_string(),
            input_limit: answer.get("inputLimit").as_i64().unwrap_or(0),
            usage: Usage {
                input_tokens: usage.get("inputTokens").as_i64().unwrap_or(0),
                output_tokens: usage.get("outputTokens").as_i64().unwrap_or(0),
                cost_usd: usage.get("costUsd").as_number().cloned().unwrap_or_else(|| Number::from(0)),
                calls: usage.get("calls").as_i64().unwrap_or(1),
            },
            provider: answer.get("provider").text_or_empty(),
            model: answer.get("model").text_or_empty(),
        })
    }
}
