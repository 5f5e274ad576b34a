//! Comparing two values.

use crate::pointer::{join, Pattern};
use crate::sentinel::{object, Value};

/// How lists are compared.
pub enum Arrays {
    /// By what was put in and taken out.
    Align,
    /// Place by place.
    Index,
    /// Whatever the order.
    Set,
    /// Objects that agree in this field are the same one.
    Key(String),
}

/// Values nested deeper than this are taken whole: the stack of a guest is small.
const DEEPEST: usize = 60;
/// How many pairs of items are compared to align two lists; longer lists are
/// compared place by place between what they have in common at both ends.
const MOST_PAIRS: usize = 250_000;
/// A step's output may have 1 MiB; operations stop being written below that.
const MOST_BYTES: usize = 600 << 10;
/// How much of a value a line shows, in characters.
const SHOWN: usize = 60;

/// Collects what is different. The operations, applied in their order, turn
/// the one value into the other but for what is ignored, and for the order of
/// lists where that does not count.
pub struct Diff {
    arrays: Arrays,
    ignore: Vec<Pattern>,
    limit: usize,
    bytes: usize,
    pub operations: Vec<Value>,
    pub lines: Vec<String>,
    pub added: usize,
    pub removed: usize,
    pub changed: usize,
}

impl Diff {
    pub fn new(arrays: Arrays, ignore: Vec<String>, limit: usize) -> Diff {
        let ignore = ignore.iter().map(|text| Pattern::new(text)).collect();
        Diff { arrays, ignore, limit, bytes: 0, operations: Vec::new(), lines: Vec::new(), added: 0, removed: 0, changed: 0 }
    }

    pub fn compare(&mut self, from: &Value, to: &Value) {
        self.value("", from, to, 0);
    }

    fn ignored(&self, path: &str) -> bool {
        self.ignore.iter().any(|pattern| pattern.fits(path))
    }

    fn value(&mut self, path: &str, a: &Value, b: &Value, depth: usize) {
        if self.ignored(path) {
            return;
        }
        match (a, b) {
            (Value::Object(x), Value::Object(_)) if depth < DEEPEST => {
                for (name, old) in x {
                    match b.find(name) {
                        Some(new) => self.value(&join(path, name), old, new, depth + 1),
                        None => self.remove(&join(path, name), old),
                    }
                }
                for (name, new) in b.fields() {
                    if a.find(name).is_none() {
                        self.add(&join(path, name), new);
                    }
                }
            }
            (Value::List(x), Value::List(y)) if depth < DEEPEST => match &self.arrays {
                Arrays::Index => self.by_index(path, x, y, 0, depth),
                Arrays::Align => self.aligned(path, x, y, depth),
                Arrays::Set => self.unordered(path, x, y, None, depth),
                Arrays::Key(key) => {
                    let key = key.clone();
                    self.unordered(path, x, y, Some(&key), depth)
                }
            },
            _ if a == b => {}
            _ => self.replace(path, a, b),
        }
    }

    /// Reports whether nothing that counts is different.
    fn same(&self, path: &str, a: &Value, b: &Value, depth: usize) -> bool {
        if self.ignored(path) {
            return true;
        }
        match (a, b) {
            (Value::Object(x), Value::Object(y)) if depth < DEEPEST && !self.ignore.is_empty() => {
                let kept = |from: &[(String, Value)], other: &Value| from.iter().all(|(name, _)| other.find(name).is_some() || self.ignored(&join(path, name)));
                kept(x, b) && kept(y, a) && x.iter().all(|(name, old)| b.find(name).map_or(true, |new| self.same(&join(path, name), old, new, depth + 1)))
            }
            (Value::List(x), Value::List(y)) if depth < DEEPEST && matches!(self.arrays, Arrays::Set | Arrays::Key(_)) => {
                x.len() == y.len() && self.pairs(path, x, y, depth).iter().all(Option::is_some)
            }
            (Value::List(x), Value::List(y)) if depth < DEEPEST && !self.ignore.is_empty() => {
                x.len() == y.len() && x.iter().zip(y).enumerate().all(|(i, (old, new))| self.same(&join(path, &i.to_string()), old, new, depth + 1))
            }
            _ => a == b,
        }
    }

    /// For each item of x the place of its equal in y, each taken once.
    fn pairs(&self, path: &str, x: &[Value], y: &[Value], depth: usize) -> Vec<Option<usize>> {
        let mut taken = vec![false; y.len()];
        let find = |(i, old): (usize, &Value)| {
            let here = join(path, &i.to_string());
            let found = (0..y.len()).find(|j| !taken[*j] && self.same(&here, old, &y[*j], depth + 1));
            if let Some(j) = found {
                taken[j] = true;
            }
            found
        };
        x.iter().enumerate().map(find).collect()
    }

    /// Compares lists place by place; first is the place of their first items.
    fn by_index(&mut self, path: &str, x: &[Value], y: &[Value], first: usize, depth: usize) {
        for (i, (old, new)) in x.iter().zip(y).enumerate() {
            self.value(&join(path, &(first + i).to_string()), old, new, depth + 1);
        }
        // From the end, so that the places before stay what they are.
        for i in (y.len()..x.len()).rev() {
            self.remove(&join(path, &(first + i).to_string()), &x[i]);
        }
        for i in x.len()..y.len() {
            self.add(&join(path, &(first + i).to_string()), &y[i]);
        }
    }

    /// Finds the longest common subsequence of two lists; what is between two of
    /// its items was changed, taken out or put in.
    fn aligned(&mut self, path: &str, x: &[Value], y: &[Value], depth: usize) {
        let equal = |i: usize, old: &Value, new: &Value| self.same(&join(path, &i.to_string()), old, new, depth + 1);
        let start = x.iter().zip(y).enumerate().take_while(|(i, (old, new))| equal(*i, old, new)).count();
        let (x, y) = (&x[start..], &y[start..]);
        let end = x.iter().rev().zip(y.iter().rev()).enumerate().take_while(|(i, (old, new))| equal(start + x.len() - 1 - i, old, new)).count();
        let (x, y) = (&x[..x.len() - end], &y[..y.len() - end]);
        if x.len() * y.len() > MOST_PAIRS {
            return self.by_index(path, x, y, start, depth);
        }
        // length[i][j] is that of x[i..] and y[j..].
        let width = y.len() + 1;
        let mut length = vec![0u32; (x.len() + 1) * width];
        let mut match_at = vec![false; x.len() * y.len()];
        for i in (0..x.len()).rev() {
            for j in (0..y.len()).rev() {
                let fits = equal(start + i, &x[i], &y[j]);
                match_at[i * y.len() + j] = fits;
                length[i * width + j] =
                    if fits { length[(i + 1) * width + j + 1] + 1 } else { length[(i + 1) * width + j].max(length[i * width + j + 1]) };
            }
        }
        let (mut i, mut j, mut place) = (0, 0, start);
        while i < x.len() || j < y.len() {
            if i < x.len() && j < y.len() && match_at[i * y.len() + j] {
                i += 1;
                j += 1;
                place += 1;
                continue;
            }
            // The stretch up to the next common item.
            let (from, to) = (i, j);
            while (i < x.len() || j < y.len()) && !(i < x.len() && j < y.len() && match_at[i * y.len() + j]) {
                if i < x.len() && (j == y.len() || length[(i + 1) * width + j] >= length[i * width + j + 1]) {
                    i += 1;
                } else {
                    j += 1;
                }
            }
            self.by_index(path, &x[from..i], &y[to..j], place, depth);
            place += j - to;
        }
    }

    /// Compares lists whose order does not count. With a key, objects that agree
    /// in it are compared with each other.
    fn unordered(&mut self, path: &str, x: &[Value], y: &[Value], key: Option<&str>, depth: usize) {
        let mut partner = self.pairs(path, x, y, depth);
        let mut taken = vec![false; y.len()];
        partner.iter().flatten().for_each(|j| taken[*j] = true);
        for (i, old) in x.iter().enumerate() {
            let id = match key.and_then(|key| old.find(key)) {
                Some(id) if partner[i].is_none() => id,
                _ => continue,
            };
            if let Some(j) = (0..y.len()).find(|j| !taken[*j] && key.and_then(|key| y[*j].find(key)) == Some(id)) {
                taken[j] = true;
                partner[i] = Some(j);
                self.value(&join(path, &i.to_string()), old, &y[j], depth + 1);
            }
        }
        for i in (0..x.len()).rev().filter(|i| partner[*i].is_none()) {
            self.remove(&join(path, &i.to_string()), &x[i]);
        }
        for new in (0..y.len()).filter(|j| !taken[*j]).map(|j| &y[j]) {
            self.add(&join(path, "-"), new);
        }
    }

    fn add(&mut self, path: &str, new: &Value) {
        if !self.ignored(path) {
            self.added += 1;
            self.put(object! { "op" => "add", "path" => path, "value" => new }, || format!("+ {}: {}", path, brief(new)));
        }
    }

    fn remove(&mut self, path: &str, old: &Value) {
        if !self.ignored(path) {
            self.removed += 1;
            self.put(object! { "op" => "remove", "path" => path, "old" => old }, || format!("- {}: {}", path, brief(old)));
        }
    }

    fn replace(&mut self, path: &str, old: &Value, new: &Value) {
        self.changed += 1;
        let shown = if path.is_empty() { "the value" } else { path };
        let line = || format!("~ {}: {} -> {}", shown, brief(old), brief(new));
        self.put(object! { "op" => "replace", "path" => path, "value" => new, "old" => old }, line);
    }

    /// Writes an operation, unless there are enough: those left out are the last,
    /// so the operations can be applied.
    fn put(&mut self, operation: Value, line: impl FnOnce() -> String) {
        let full = self.operations.len() >= self.limit || self.bytes > MOST_BYTES;
        self.bytes += if full { MOST_BYTES } else { operation.to_json().len() };
        if !full && self.bytes <= MOST_BYTES {
            self.operations.push(operation);
            self.lines.push(line());
        }
    }
}

/// A value as a line shows it.
fn brief(value: &Value) -> String {
    let text = value.to_json();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => text.get(..end).unwrap_or("").to_string() + "...",
        None => text,
    }
}
