//! The exports of a plugin, clause A1.

use super::testing::Host;
use super::{object, parse, Code, Context, Error, Plugin, Result, Value};

impl Plugin {
    /// Executes one step: gets the text of a run input, returns that of a run output.
    /// The given host answers the host calls, if there is one.
    pub fn run(&self, input: &str, host: Option<&mut dyn Host>) -> Result<String> {
        let input = parse(input).map_err(|e| Error::new(Code::Internal, format!("run input: {}", e)))?;
        let mut ctx = Context::new(&input, host)?;
        let step = match self.find(&ctx.step_type) {
            Some(step) => step,
            None => return Err(Error::bad_field("type", &format!("plugin {} has no step type {}", self.name, Value::from(&ctx.step_type)))),
        };
        let output = (step.run)(&mut ctx)?;
        Ok(object! { "output" => output }.to_json())
    }

    /// Executes the export validate: gets the text of its input, returns its output.
    pub fn check(&self, input: &str) -> Result<String> {
        let input = parse(input).map_err(|e| Error::new(Code::Internal, format!("validate input: {}", e)))?;
        let check = self.find(input.get("type").as_str().unwrap_or("")).and_then(|step| step.check);
        let problems = check.map_or(Vec::new(), |check| check(input.get("fields")));
        let shown = problems.into_iter().map(|p| object! { "field" => p.field, "message" => p.message }.with_some("hint", p.hint));
        Ok(object! { "problems" => Value::List(shown.collect()) }.to_json())
    }
}

/// The functions that the host calls. The function `plugin` is in the source of the
/// plugin.
#[cfg(target_arch = "wasm32")]
mod exports {
    use super::super::kernel;
    use super::Result;

    #[no_mangle]
    extern "C" fn describe() -> i32 {
        finish(|| crate::plugin().manifest())
    }

    #[no_mangle]
    extern "C" fn run() -> i32 {
        finish(|| crate::plugin().run(&kernel::input()?, None))
    }

    #[no_mangle]
    extern "C" fn validate() -> i32 {
        finish(|| crate::plugin().check(&kernel::input()?))
    }

    #[inline(never)]
    /// Status 0 with an output, 1 with an error, clause A1.4.
    fn finish(export: fn() -> Result<String>) -> i32 {
        kernel::report_panics();
        match export() {
            Ok(output) => {
                kernel::set_output(&output);
                0
            }
            Err(error) => {
                kernel::set_error(&error.to_value().to_json());
                1
            }
        }
    }
}
