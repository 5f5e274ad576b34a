//! What one module provides.

use super::{Context, Error, Result, Value};

/// A plugin: its step types, and what they ask for.
pub struct Plugin {
    pub name: &'static str,
    /// The author's own.
    pub version: &'static str,
    pub steps: Vec<Step>,
    pub asks: Vec<Ask>,
    pub stateless: bool,
}

impl Plugin {
    /// The name is lower_snake, at most 64 letters.
    pub fn new(name: &'static str, version: &'static str) -> Plugin {
        Plugin { name, version, steps: Vec::new(), asks: Vec::new(), stateless: false }
    }

    pub fn step(mut self, step: Step) -> Plugin {
        self.steps.push(step);
        self
    }

    pub fn ask(mut self, ask: Ask) -> Plugin {
        self.asks.push(ask);
        self
    }

    /// Says that requests and outputs depend on the input alone, so that an
    /// operator may allow instances to be reused.
    pub fn stateless(self) -> Plugin {
        Plugin { stateless: true, ..self }
    }

    pub(super) fn find(&self, name: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.name == name)
    }
}

/// Carries out one step and returns its output.
pub type Run = fn(&mut Context) -> Result<Value>;

/// Says what is wrong with fields beyond what the schema says. They are as
/// written: a text may still hold references where a number is wanted, nested
/// steps are counts.
pub type Validate = fn(fields: &Value) -> Vec<Problem>;

/// One step type.
pub struct Step {
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    pub(super) fields: &'static str,
    pub(super) run: Run,
    pub(super) check: Option<Validate>,
    pub(super) infer: &'static [&'static str],
    pub(super) aliases: &'static [(&'static str, &'static str)],
    pub(super) read_only: bool,
}

impl Step {
    /// The name is lower_snake; the summary one sentence for people; fields the
    /// JSON Schema, of type object, of the step's own fields, clause A2.2. A
    /// property may carry `"x-sentinel"` with a mark of clause A2.3.
    pub fn new(name: &'static str, summary: &'static str, fields: &'static str, run: Run) -> Step {
        Step { name, summary, fields, run, check: None, infer: &[], aliases: &[], read_only: false }
    }

    /// A step without a type that has one of these fields is of this type.
    pub fn infer(self, fields: &'static [&'static str]) -> Step {
        Step { infer: fields, ..self }
    }

    /// Other names of fields, each with the one that the schema has.
    pub fn aliases(self, aliases: &'static [(&'static str, &'static str)]) -> Step {
        Step { aliases, ..self }
    }

    /// The step changes nothing outside the run.
    pub fn read_only(self) -> Step {
        Step { read_only: true, ..self }
    }

    pub fn validate(self, check: Validate) -> Step {
        Step { check: Some(check), ..self }
    }
}

/// One permission with its reason, which the operator reads. What names mean for
/// each use is in clause A2.4.
pub struct Ask {
    pub(super) usage: &'static str,
    pub(super) names: &'static [&'static str],
    pub(super) reason: &'static str,
}

impl Ask {
    fn new(usage: &'static str, names: &'static [&'static str], reason: &'static str) -> Ask {
        Ask { usage, names, reason }
    }

    /// Commands: `code/read`, `code/*`.
    pub fn command(names: &'static [&'static str], reason: &'static str) -> Ask {
        Ask::new("command", names, reason)
    }

    /// Models; none for any.
    pub fn llm(names: &'static [&'static str], reason: &'static str) -> Ask {
        Ask::new("llm", names, reason)
    }

    pub fn watch(reason: &'static str) -> Ask {
        Ask::new("watch", &[], reason)
    }

    /// Ids of sentinels; none for the definitions in the step's fields alone.
    pub fn spawn(names: &'static [&'static str], reason: &'static str) -> Ask {
        Ask::new("spawn", names, reason)
    }

    /// Patterns of events; none for any.
    pub fn emit(names: &'static [&'static str], reason: &'static str) -> Ask {
        Ask::new("emit", names, reason)
    }

    /// Hosts: `api.example.com`, `*.example.com:8443`.
    pub fn http(hosts: &'static [&'static str], reason: &'static str) -> Ask {
        Ask::new("http", hosts, reason)
    }

    /// Words of the plugin's own for folders: `data` to read, `data:rw`.
    pub fn folder(names: &'static [&'static str], reason: &'static str) -> Ask {
        Ask::new("folder", names, reason)
    }

    /// Secrets that the host puts into requests.
    pub fn secret(names: &'static [&'static str], reason: &'static str) -> Ask {
        Ask::new("secret", names, reason)
    }
}

/// One fault of a step's fields.
#[derive(Debug, PartialEq)]
pub struct Problem {
    /// Its path: `params.path`.
    pub field: String,
    pub message: String,
    pub hint: Option<String>,
}

impl Problem {
    pub fn new(field: &str, message: &str) -> Problem {
        Problem { field: field.to_string(), message: message.to_string(), hint: None }
    }

    pub fn hint(self, hint: &str) -> Problem {
        Problem { hint: Some(hint.to_string()), ..self }
    }
}

/// A problem as the error of a run, so that both can share one check.
impl From<Problem> for Error {
    fn from(problem: Problem) -> Error {
        let mut error = Error::bad_field(&problem.field, &problem.message);
        error.hint = problem.hint;
        error
    }
}
