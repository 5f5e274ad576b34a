//! The step as plain Rust: rustc --edition 2021 --test plugin.rs

use crate::sentinel::testing::{self, Script};
use crate::sentinel::{list, object, parse, Result, Value};
use crate::{plugin, pointer::Pattern};

fn run(fields: Value) -> Result<Value> {
    testing::run(&plugin(), "json_diff", fields, &mut Script::new())
}

/// Carries operations out as RFC 6902 has it.
fn patch(mut value: Value, operations: &Value) -> Value {
    for operation in operations.items() {
        let path: Vec<String> = operation.get("path").as_str().unwrap().split('/').skip(1).map(|s| s.replace("~1", "/").replace("~0", "~")).collect();
        value = apply(value, &path, operation);
    }
    value
}

fn apply(value: Value, path: &[String], operation: &Value) -> Value {
    let new = operation.get("value").clone();
    let op = operation.get("op").as_str().unwrap();
    let (step, last) = match path {
        [] => return new,
        [step, rest @ ..] => (step, rest.is_empty()),
    };
    match value {
        Value::Object(mut fields) => {
            let at = fields.iter().position(|(name, _)| name == step);
            match (op, at) {
                _ if !last => {
                    let at = at.expect("a path that is there");
                    fields[at].1 = apply(fields[at].1.clone(), &path[1..], operation);
                }
                ("add", None) => fields.push((step.clone(), new)),
                ("remove", Some(at)) => {
                    assert_eq!(&fields.remove(at).1, operation.get("old"));
                }
                ("replace", Some(at)) => fields[at].1 = new,
                other => panic!("{:?} at {}", other, step),
            }
            Value::Object(fields)
        }
        Value::List(mut items) => {
            let at = if step == "-" { items.len() } else { step.parse().unwrap() };
            match op {
                _ if !last => items[at] = apply(items[at].clone(), &path[1..], operation),
                "add" => items.insert(at, new),
                "remove" => assert_eq!(&items.remove(at), operation.get("old")),
                _ => items[at] = new,
            }
            Value::List(items)
        }
        other => panic!("a path into {:?}", other),
    }
}

/// Numbers that look random and are the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }

    fn value(&mut self, depth: u64) -> Value {
        match self.below(if depth == 0 { 4 } else { 7 }) {
            0 => Value::Null,
            1 => Value::from(self.below(2) == 0),
            2 => Value::from(self.below(4) as i64),
            3 => Value::from(["", "a", "é/~"][self.below(3) as usize]),
            4 | 5 => Value::List((0..self.below(6)).map(|_| self.value(depth - 1)).collect()),
            _ => (0..self.below(5)).fold(Value::object(), |o, _| {
                let name = ["a", "b", "c/d", "e~f", ""][self.below(5) as usize];
                o.with(name, self.value(depth - 1))
            }),
        }
    }
}

#[test]
fn operations_turn_one_into_the_other() {
    let mut chance = Chance(1);
    for _ in 0..3000 {
        let (from, to) = (chance.value(4), chance.value(4));
        for arrays in ["align", "index"] {
            let out = run(object! { "from" => &from, "to" => &to, "arrays" => arrays }).unwrap();
            assert_eq!(patch(from.clone(), out.get("operations")), to, "{} {} {} {}", arrays, from, to, out);
            assert_eq!(out.get("equal").as_bool(), Some(from == to));
        }
        // Where the order does not count nothing is left to do after the patch.
        let out = run(object! { "from" => &from, "to" => &to, "arrays" => "set" }).unwrap();
        let patched = patch(from.clone(), out.get("operations"));
        let again = run(object! { "from" => &patched, "to" => &to, "arrays" => "set" }).unwrap();
        assert_eq!(again.get("equal").as_bool(), Some(true), "{} {} {}", from, to, out);
    }
}

#[test]
fn a_small_change_is_a_small_diff() {
    let mut chance = Chance(2);
    for _ in 0..200 {
        let items: Vec<Value> = (0..20).map(|i| object! { "id" => i as i64, "v" => chance.value(2) }).collect();
        let mut other = items.clone();
        let at = chance.below(20) as usize;
        match chance.below(2) {
            0 => drop(other.remove(at)),
            _ => other.insert(at, Value::from("new")),
        }
        let out = run(object! { "from" => Value::List(items), "to" => Value::List(other) }).unwrap();
        assert_eq!(out.get("operations").items().len(), 1, "{}", out);
    }
}

#[test]
fn what_is_ignored_does_not_count() {
    let from = parse(r#"{"at":1,"items":[{"id":1,"at":2},{"id":2,"at":3}],"meta":{"x":{"y":1}}}"#).unwrap();
    let to = parse(r#"{"at":9,"items":[{"id":1,"at":8},{"id":2}],"meta":{"x":{"y":2,"z":3}}}"#).unwrap();
    let left = |ignore: Value| run(object! { "from" => &from, "to" => &to, "ignore" => ignore }).unwrap().get("text").as_str().unwrap().to_string();
    assert_eq!(left(list!["at", "/meta/**"]), "no difference");
    assert_eq!(left(list!["/items/*/at", "/at", "y"]), "+ /meta/x/z: 3");
    assert_eq!(left(list!["at", "/meta"]), "no difference");
    for (pattern, path, fits) in [("/**/b", "/b", true), ("/**/b", "/a/a/b", true), ("/a/**/b/*", "/a/b/b/c", true), ("/a/*", "/a", false), ("x", "/a/x", true), ("x", "/x/a", false)] {
        assert_eq!(Pattern::new(pattern).fits(path), fits, "{} {}", pattern, path);
    }
}

#[test]
fn objects_are_paired_by_key() {
    let from = parse(r#"[{"id":1,"n":"a"},{"id":2,"n":"b"},{"id":3,"n":"c"}]"#).unwrap();
    let to = parse(r#"[{"id":3,"n":"c"},{"id":1,"n":"A"},{"id":4,"n":"d"}]"#).unwrap();
    let out = run(object! { "from" => from, "to" => to, "arrays" => "key", "key" => "id" }).unwrap();
    assert_eq!(out.get("text").as_str().unwrap(), "~ /0/n: \"a\" -> \"A\"\n- /1: {\"id\":2,\"n\":\"b\"}\n+ /-: {\"id\":4,\"n\":\"d\"}");
    assert_eq!(run(object! { "from" => 1, "to" => 2, "arrays" => "key" }).unwrap_err().field.as_deref(), Some("key"));
}

#[test]
fn bounds_hold() {
    let many = |n: i64| Value::List((0..n).map(Value::from).collect());
    let out = run(object! { "from" => many(0), "to" => many(50), "limit" => 3 }).unwrap();
    assert_eq!((out.get("operations").items().len(), out.get("counts").get("added").as_i64(), out.get("truncated").as_bool()), (3, Some(50), Some(true)));
    assert!(out.get("text").as_str().unwrap().ends_with("... and 47 more"));
    let big = object! { "x" => "y".repeat(400 << 10) };
    let out = run(object! { "from" => list![1, 2], "to" => list![&big, &big] }).unwrap();
    assert!(out.to_json().len() < 1 << 20 && out.get("truncated").as_bool() == Some(true));
    let deep = parse(&("[".repeat(200) + "1" + &"]".repeat(200))).unwrap();
    assert_eq!(run(object! { "from" => &deep, "to" => 1 }).unwrap().get("counts").get("changed").as_i64(), Some(1));
    // Too long to align: place by place, and still right.
    let (from, to) = (many(600), Value::List((1..601).map(|n| Value::from(n * 2)).collect()));
    let out = run(object! { "from" => &from, "to" => &to, "limit" => 10000 }).unwrap();
    assert_eq!(patch(from, out.get("operations")), to);
}

#[test]
fn texts_are_read_where_they_are_json() {
    let out = run(object! { "from" => "{\"a\":1}", "to" => "{\"a\":1.0}", "parse" => true }).unwrap();
    assert_eq!(out.get("equal").as_bool(), Some(true));
    assert_eq!(run(object! { "from" => "{", "to" => "{}", "parse" => true }).unwrap_err().message, "from: json byte 1: expected a key");
}

#[test]
fn describes_itself() {
    plugin().manifest().unwrap();
}
