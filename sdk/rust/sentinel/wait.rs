//! Waiting for time, events, runs and decisions, clause A6.11. The instance may be
//! unloaded meanwhile, so that a wait needs no resources.

use super::{kernel, object, Code, Context, Error, Result, Value};

/// What to wait for.
pub enum Wait {
    /// Milliseconds of calendar time.
    Duration(i64),
    /// A time, RFC 3339. A time in the past ends the wait at once.
    Until(String),
    /// The next event whose name matches the pattern.
    Event(String),
    /// The end of a run.
    Run(String),
    /// A decision; without approvers, any user may decide who is allowed to. A call
    /// kind is the kind of calls that an approval covers.
    Decision { prompt: String, approvers: Vec<String>, call_kind: Option<String> },
}

/// The result of a wait.
pub struct Waited {
    pub timed_out: bool,
    /// The event's record.
    pub event: Option<Value>,
    /// The run's result, also if the run has failed.
    pub result: Option<Value>,
    pub decision: Option<Decision>,
}

/// The answer to a pending decision.
pub struct Decision {
    pub approved: bool,
    pub by: String,
    /// RFC 3339.
    pub at: String,
    pub comment: Option<String>,
}

impl Context<'_> {
    /// Waits; reaching the time limit in milliseconds is reported in the answer.
    /// Without one only the step's time limit ends the wait.
    pub fn wait(&mut self, wait: &Wait, timeout_ms: Option<i64>) -> Result<Waited> {
        let request = match wait {
            Wait::Duration(ms) => object! { "durationMs" => *ms },
            Wait::Until(moment) => object! { "until" => moment },
            Wait::Event(pattern) => object! { "event" => pattern },
            Wait::Run(run) => object! { "run" => run },
            Wait::Decision { prompt, approvers, call_kind } => {
                let named = Some(approvers.as_slice()).filter(|a| !a.is_empty());
                object! { "decision" => object! { "prompt" => prompt }.with_some("approvers", named).with_some("callKind", call_kind.as_ref()) }
            }
        };
        let answer = self.call("sentinel_wait", kernel::sentinel_wait, request.with_some("timeoutMs", timeout_ms))?;
        let decision = |d: &Value| Decision {
            approved: d.get("verdict").as_str() == Some("approve"),
            by: d.get("by").text_or_empty(),
            at: d.get("at").text_or_empty(),
            comment: d.get("comment").as_str().map(str::to_string),
        };
        Ok(Waited {
            timed_out: answer.get("timedOut").as_bool().unwrap_or(false),
            event: answer.find("event").cloned(),
            result: answer.find("result").cloned(),
            decision: answer.find("decision").filter(|d| d.given()).map(decision),
        })
    }

    pub fn sleep(&mut self, ms: i64) -> Result<()> {
        self.wait_for(Wait::Duration(ms), None).map(|_| ())
    }

    pub fn wait_until(&mut self, moment: &str) -> Result<()> {
        self.wait_for(Wait::Until(moment.to_string()), None).map(|_| ())
    }

    /// Waits for an event and returns its record.
    pub fn wait_event(&mut self, pattern: &str, timeout_ms: Option<i64>) -> Result<Value> {
        let waited = self.wait_for(Wait::Event(pattern.to_string()), timeout_ms)?;
        Ok(waited.event.unwrap_or(Value::Null))
    }

    /// Waits until a run has ended and returns its result.
    pub fn wait_run(&mut self, run: &str, timeout_ms: Option<i64>) -> Result<Value> {
        let waited = self.wait_for(Wait::Run(run.to_string()), timeout_ms)?;
        Ok(waited.result.unwrap_or(Value::Null))
    }

    /// Waits for a decision. Reaching the time limit is an error, never an
    /// approval.
    pub fn decide(&mut self, prompt: &str, approvers: &[String], timeout_ms: Option<i64>) -> Result<Decision> {
        self.decision(Wait::Decision { prompt: prompt.to_string(), approvers: approvers.to_vec(), call_kind: None }, timeout_ms)
    }

    /// Waits for the approval of a call by any user who is allowed to. The kind is
    /// that of the calls which the approval covers, such as `code/write`.
    pub fn decide_call(&mut self, prompt: &str, kind: &str) -> Result<Decision> {
        self.decision(Wait::Decision { prompt: prompt.to_string(), approvers: Vec::new(), call_kind: Some(kind.to_string()) }, None)
    }

    fn decision(&mut self, wait: Wait, timeout_ms: Option<i64>) -> Result<Decision> {
        let silent = || Error::new(Code::Internal, "sentinel_wait: ended without a decision");
        self.wait_for(wait, timeout_ms)?.decision.ok_or_else(silent)
    }

    /// Waits; reaching the time limit is an error.
    fn wait_for(&mut self, wait: Wait, timeout_ms: Option<i64>) -> Result<Waited> {
        let waited = self.wait(&wait, timeout_ms)?;
        if waited.timed_out {
            return Err(Error::new(Code::Timeout, "wait: time limit reached"));
        }
        Ok(waited)
    }
}
