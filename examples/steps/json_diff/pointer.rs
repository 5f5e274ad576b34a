//! Paths in a value: JSON Pointers (RFC 6901), and the patterns that say what is
//! ignored.

/// Appends a step to a pointer.
pub fn join(path: &str, step: &str) -> String {
    format!("{}/{}", path, step.replace('~', "~0").replace('/', "~1"))
}

/// A path that is ignored, with `*` for one step and `**` for any number.
pub struct Pattern(Vec<String>);

impl Pattern {
    /// A text without a slash is a field's name, wherever it is.
    pub fn new(text: &str) -> Pattern {
        let steps = match text.strip_prefix('/') {
            Some(rest) => rest.split('/').map(str::to_string).collect(),
            None => vec!["**".to_string(), text.replace('~', "~0").replace('/', "~1")],
        };
        Pattern(steps)
    }

    /// Reports whether the pointer is what is ignored.
    pub fn fits(&self, path: &str) -> bool {
        let steps: Vec<&str> = path.split('/').skip(1).collect();
        fits(&self.0, &steps)
    }
}

/// Compares from the start; the last `**` met takes as little as it can and more
/// each time that what follows does not fit.
fn fits(pattern: &[String], steps: &[&str]) -> bool {
    let (mut p, mut s) = (0, 0);
    let mut again = None;
    while s < steps.len() {
        if p < pattern.len() && pattern[p] == "**" {
            again = Some((p, s));
            p += 1;
        } else if p < pattern.len() && (pattern[p] == "*" || pattern[p] == steps[s]) {
            p += 1;
            s += 1;
        } else if let Some((star, from)) = again {
            again = Some((star, from + 1));
            p = star + 1;
            s = from + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|step| step == "**")
}
