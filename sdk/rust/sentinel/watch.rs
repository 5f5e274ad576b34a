//! Waiting for the lines of a shell execution, clause A6.5.

use super::{kernel, object, Context, Result, Value};

/// Which execution to watch, and until when.
#[derive(Default)]
pub struct Watch {
    pub execution: String,
    /// None for those that the execution already has.
    pub rules: Option<Vec<Rule>>,
    /// `finished`, `error` or `match`; None is the first.
    pub until: Option<String>,
}

/// Classifies lines that match a pattern.
pub struct Rule {
    pub pattern: String,
    pub classification: String,
    pub action: Option<String>,
}

/// The result of a watch.
pub struct Watched {
    pub execution: String,
    pub lines: Vec<Line>,
    /// The lines for display.
    pub text: String,
    pub finished: bool,
    /// That of the process, if it has finished and has one.
    pub exit_code: Option<i64>,
    /// The number of lines that were dropped.
    pub dropped: i64,
    pub cursor: i64,
}

/// One line of output.
pub struct Line {
    pub text: String,
    pub classification: String,
    pub number: i64,
    pub stream: String,
    /// As the host gives it.
    pub timestamp: Value,
}

impl Context<'_> {
    /// Blocks until the condition is true or the execution has ended.
    pub fn watch(&mut self, watch: &Watch) -> Result<Watched> {
        let rule = |r: &Rule| object! { "pattern" => &r.pattern, "classification" => &r.classification }.with_some("action", r.action.as_ref());
        let rules: Option<Vec<Value>> = watch.rules.as_ref().map(|rules| rules.iter().map(rule).collect());
        let request = object! { "executionId" => &watch.execution }.with_some("rules", rules).with_some("until", watch.until.as_ref());
        let answer = self.call("sentinel_watch", kernel::sentinel_watch, request)?;
        let line = |line: &Value| Line {
            text: line.get("text").text_or_empty(),
            classification: line.get("classification").text_or_empty(),
            number: line.get("lineNumber").as_i64().unwrap_or(0),
            stream: line.get("stream").text_or_empty(),
            timestamp: line.get("timestamp").clone(),
        };
        Ok(Watched {
            execution: answer.get("executionId").text_or_empty(),
            lines: answer.get("lines").items().iter().map(line).collect(),
            text: answer.get("text").text_or_empty(),
            finished: answer.get("finished").as_bool().unwrap_or(false),
            exit_code: answer.get("exitCode").as_i64(),
            dropped: answer.get("dropped").as_i64().unwrap_or(0),
            cursor: answer.get("cursor").as_i64().unwrap_or(0),
        })
    }
}
