//! The manifest of a plugin, clause A2.

use super::print::quote;
use super::{object, parse, Code, Error, Plugin, Result, Step, Value, ABI};

impl Plugin {
    /// The text of the manifest. It returns an error with the position for mistakes
    /// that the host would refuse; call `plugin().manifest()` in a test.
    pub fn manifest(&self) -> Result<String> {
        named("plugin", self.name)?;
        let mut out = String::from("{\"name\":");
        quote(self.name, &mut out);
        out.push_str(",\"version\":");
        quote(self.version, &mut out);
        out.push_str(&format!(",\"abi\":{},\"steps\":[", ABI));
        for (i, step) in self.steps.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            step.describe(&mut out)?;
        }
        out.push(']');
        if !self.permissions.is_empty() {
            out.push_str(",\"permissions\":");
            let permission = |permission: &super::Permission| {
                let names = if permission.names.is_empty() { None } else { Some(permission.names) };
                object! { "use" => permission.usage, "reason" => permission.reason }.with_some("names", names)
            };
            Value::List(self.permissions.iter().map(permission).collect()).write(&mut out);
        }
        if self.stateless {
            out.push_str(",\"stateless\":true");
        }
        out.push('}');
        Ok(out)
    }
}

impl Step {
    /// Appends the step type. The schema is inserted as it is written, after a check
    /// that it is JSON: a mistake in it would invalidate the whole manifest.
    fn describe(&self, out: &mut String) -> Result<()> {
        named("step type", self.name)?;
        let schema = parse(self.fields).map_err(|e| wrong("schema of step type", self.name, &e.to_string()))?;
        if schema.get("type").as_str() != Some("object") {
            return Err(wrong("schema of step type", self.name, "want \"type\": \"object\""));
        }
        out.push_str("{\"type\":");
        quote(self.name, out);
        out.push_str(",\"summary\":");
        quote(self.summary, out);
        out.push_str(",\"fields\":");
        out.push_str(self.fields);
        if !self.output.is_empty() {
            parse(self.output).map_err(|e| wrong("output schema of step type", self.name, &e.to_string()))?;
            out.push_str(",\"output\":");
            out.push_str(self.output);
        }
        if !self.infer.is_empty() {
            out.push_str(",\"infer\":");
            Value::from(self.infer).write(out);
        }
        if !self.aliases.is_empty() {
            out.push_str(",\"aliases\":");
            let aliases = self.aliases.iter().map(|(alias, field)| (alias.to_string(), Value::from(*field)));
            Value::Object(aliases.collect()).write(out);
        }
        if self.read_only {
            out.push_str(",\"readOnly\":true");
        }
        if let Some((role, name)) = self.provides {
            out.push_str(",\"provides\":");
            let name = if name.is_empty() { None } else { Some(name) };
            object! { "as" => role.name() }.with_some("name", name).write(out);
        }
        out.push('}');
        Ok(())
    }
}

/// Checks a name against clause A2.1.
fn named(what: &str, name: &str) -> Result<()> {
    let fits = |(i, b): (usize, u8)| matches!(b, b'a'..=b'z') || i > 0 && matches!(b, b'0'..=b'9' | b'_');
    if name.is_empty() || name.len() > 64 || !name.bytes().enumerate().all(fits) {
        return Err(wrong(what, name, "want a name of a-z, 0-9 and _ that begins with a letter"));
    }
    Ok(())
}

/// An error about the source of the plugin: only its author sees it.
fn wrong(what: &str, name: &str, why: &str) -> Error {
    Error::new(Code::Plugin, format!("describe {} {}: {}", what, Value::from(name), why))
}
