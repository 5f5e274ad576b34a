//! The description of a plugin.

use super::{Context, Error, Result, Value};

/// A plugin: its step types, and the permissions that they request.
pub struct Plugin {
    pub name: &'static str,
    /// Chosen by the author.
    pub version: &'static str,
    pub steps: Vec<Step>,
    pub permissions: Vec<Permission>,
    pub stateless: bool,
}

impl Plugin {
    /// The name is lower_snake, at most 64 letters.
    pub fn new(name: &'static str, version: &'static str) -> Plugin {
        Plugin { name, version, steps: Vec::new(), permissions: Vec::new(), stateless: false }
    }

    pub fn step(mut self, step: Step) -> Plugin {
        self.steps.push(step);
        self
    }

    pub fn permission(mut self, permission: Permission) -> Plugin {
        self.permissions.push(permission);
        self
    }

    /// Declares that requests and outputs depend only on the input, so that an operator
    /// may allow instances to be reused.
    pub fn stateless(self) -> Plugin {
        Plugin { stateless: true, ..self }
    }

    pub(super) fn find(&self, name: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.name == name)
    }
}

/// Executes one step and returns its output.
pub type Run = fn(&mut Context) -> Result<Value>;

/// Returns problems of the fields that the schema cannot express. The fields are as
/// written: a text may have references where a number is required, and nested steps
/// are counts.
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
    pub(super) output: &'static str,
    pub(super) provides: Option<(Role, &'static str)>,
}

/// What a step type is besides, clause A9. The plugin needs the permission
/// [Permission::provide] for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    Command,
    ErrorClassifier,
    OutputClassifier,
    Notifier,
    Model,
}

impl Role {
    pub(super) fn name(self) -> &'static str {
        match self {
            Role::Command => "command",
            Role::ErrorClassifier => "error_classifier",
            Role::OutputClassifier => "output_classifier",
            Role::Notifier => "notifier",
            Role::Model => "model",
        }
    }
}

impl Step {
    /// The name is lower_snake; the summary one sentence for users; fields the
    /// JSON Schema, of type object, of the step's own fields, clause A2.2. A
    /// property may have `"x-sentinel"` with a mark of clause A2.3.
    pub fn new(name: &'static str, summary: &'static str, fields: &'static str, run: Run) -> Step {
        Step { name, summary, fields, run, check: None, infer: &[], aliases: &[], read_only: false, output: "", provides: None }
    }

    /// A step without a type that has one of these fields is of this type.
    pub fn infer(self, fields: &'static [&'static str]) -> Step {
        Step { infer: fields, ..self }
    }

    /// Aliases of fields, each with the name in the schema.
    pub fn aliases(self, aliases: &'static [(&'static str, &'static str)]) -> Step {
        Step { aliases, ..self }
    }

    /// The step changes nothing outside the run.
    pub fn read_only(self) -> Step {
        Step { read_only: true, ..self }
    }

    /// The JSON Schema of the output, for users and for checks of references to it.
    pub fn output(self, schema: &'static str) -> Step {
        Step { output: schema, ..self }
    }

    /// The step type is also a command with this name, PLUGIN/VERB. It needs an output.
    pub fn command(self, name: &'static str) -> Step {
        Step { provides: Some((Role::Command, name)), ..self }
    }

    /// The step type also has this role.
    pub fn provides(self, role: Role) -> Step {
        Step { provides: Some((role, "")), ..self }
    }

    pub fn validate(self, check: Validate) -> Step {
        Step { check: Some(check), ..self }
    }
}

/// One permission with its reason, which the operator reads. Clause A2.4 has the meaning
/// of names for each use.
pub struct Permission {
    pub(super) usage: &'static str,
    pub(super) names: &'static [&'static str],
    pub(super) reason: &'static str,
}

impl Permission {
    fn new(usage: &'static str, names: &'static [&'static str], reason: &'static str) -> Permission {
        Permission { usage, names, reason }
    }

    /// Commands: `code/read`, `code/*`.
    pub fn command(names: &'static [&'static str], reason: &'static str) -> Permission {
        Permission::new("command", names, reason)
    }

    /// Models; none for any.
    pub fn llm(names: &'static [&'static str], reason: &'static str) -> Permission {
        Permission::new("llm", names, reason)
    }

    pub fn watch(reason: &'static str) -> Permission {
        Permission::new("watch", &[], reason)
    }

    /// Ids of sentinels; none for only the definitions in the step's fields.
    pub fn spawn(names: &'static [&'static str], reason: &'static str) -> Permission {
        Permission::new("spawn", names, reason)
    }

    /// Patterns of events; none for any.
    pub fn emit(names: &'static [&'static str], reason: &'static str) -> Permission {
        Permission::new("emit", names, reason)
    }

    /// Roles of step types: `command`, `error_classifier`, `output_classifier`, `notifier`, `model`.
    pub fn provide(roles: &'static [&'static str], reason: &'static str) -> Permission {
        Permission::new("provide", roles, reason)
    }

    /// Hosts: `api.example.com`, `*.example.com:8443`.
    pub fn http(hosts: &'static [&'static str], reason: &'static str) -> Permission {
        Permission::new("http", hosts, reason)
    }

    /// Names for folders that the plugin chooses: `data` to read, `data:rw`.
    pub fn folder(names: &'static [&'static str], reason: &'static str) -> Permission {
        Permission::new("folder", names, reason)
    }

    /// Secrets that the host inserts in requests.
    pub fn secret(names: &'static [&'static str], reason: &'static str) -> Permission {
        Permission::new("secret", names, reason)
    }
}

/// One invalid field of a step.
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
