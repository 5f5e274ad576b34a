//! The tests of the SDK that run natively, without a host:
//!
//!     rustc --edition 2021 --test tests/sdk.rs -o /tmp/sdk && /tmp/sdk

#[path = "../sentinel/mod.rs"]
mod sentinel;

use sentinel::testing::{self, Script};
use sentinel::*;

const FIELDS: &str = r#"{"type": "object", "properties": {"n": {"type": "integer"}}}"#;

pub fn plugin() -> Plugin {
    Plugin::new("probe", "1.2.3")
        .permission(Permission::command(&["code/*"], "to \"read\""))
        .step(Step::new("probe", "Probes.", FIELDS, run).infer(&["n"]).aliases(&[("m", "n")]).read_only().validate(check))
}

fn run(ctx: &mut Context) -> Result<Value> {
    let n = ctx.int("n", 1, 7)?;
    if n == 99 {
        return Ok(object! { "lines" => ctx.command("code/read", object! { "path" => "a" })?.get("lines") });
    }
    Ok(Value::from(n))
}

fn check(fields: &Value) -> Vec<Problem> {
    match fields.get("n").as_i64() {
        Some(13) => vec![Problem::new("n", "brings bad luck").hint("use 14")],
        _ => vec![],
    }
}

#[test]
fn json_comes_back_as_it_was() {
    for text in [
        "null", "true", "[]", "{}", "0", "-0", "1.50", "1e400", "9007199254740993", "\"\"", r#""a\"\\\n\u0000é✓😀""#,
        r#"{"b":1,"a":[{},[],{"":null}]}"#,
    ] {
        assert_eq!(parse(text).unwrap().to_json(), text);
    }
    assert_eq!(parse(" [ 1 , { \"a\" : \"\\u00e9\\ud83d\\ude00\\ud83d\" } ] ").unwrap(), list![1, object! { "a" => "é😀\u{fffd}" }]);
}

#[test]
fn bad_json_is_refused_with_its_place() {
    for (text, offset, reason) in [
        ("", 0, "unexpected end"),
        ("[1", 2, "expected , or ]"),
        ("[1,]", 3, "expected a value"),
        ("{\"a\":1,}", 7, "expected a key"),
        ("{\"a\" 1}", 5, "expected :"),
        ("{\"a\":1,\"a\":2}", 7, "duplicate key"),
        ("01", 1, "text after the value"),
        ("-", 1, "expected a digit"),
        ("1.", 2, "expected a digit"),
        ("1e+", 3, "expected a digit"),
        ("\"a", 2, "string without an end"),
        ("\"\\x\"", 2, "unknown escape"),
        ("\"\\u12g4\"", 2, "expected four hex digits"),
        ("\"\n\"", 1, "control character in a string"),
        ("nul", 0, "expected a value"),
        ("1 2", 2, "text after the value"),
    ] {
        assert_eq!(parse(text), Err(SyntaxError { offset, reason }), "{}", text);
    }
    let many: Vec<String> = (0..40).map(|i| format!("\"k{}\":{}", i % 39, i)).collect();
    assert_eq!(parse(&format!("{{{}}}", many.join(","))).unwrap_err().reason, "duplicate key");
}

#[test]
fn depth_has_an_end() {
    let deep = |n: usize| "[".repeat(n) + &"]".repeat(n);
    assert_eq!(parse(&deep(MAX_DEPTH)).unwrap().to_json(), deep(MAX_DEPTH));
    assert_eq!(parse(&deep(MAX_DEPTH + 1)).unwrap_err().reason, "nested too deeply");
    assert_eq!(parse(&"[".repeat(1_000_000)).unwrap_err().offset, MAX_DEPTH);
}

/// Reading ends for every prefix and every changed byte of a text, and a value that was
/// read is the same after writing and reading it again.
#[test]
fn damaged_json_is_read_or_refused() {
    let text = r#"{"a":[1,-2.5e+10,true,null],"b":{"":"x\u00e9\ud83d\ude00\n"},"c":"ü"}"#;
    for at in 0..text.len() {
        if text.is_char_boundary(at) {
            assert!(parse(&text[..at]).is_err());
        }
        for b in 0..128u8 {
            let mut bytes = text.as_bytes().to_vec();
            bytes[at] = b;
            if let Ok(Ok(value)) = std::str::from_utf8(&bytes).map(parse) {
                assert_eq!(parse(&value.to_json()), Ok(value));
            }
        }
    }
}

#[test]
fn numbers_are_compared_by_what_they_stand_for() {
    let n = |text: &str| parse(text).unwrap();
    for (a, b) in [("1", "1.0"), ("1e2", "100"), ("0", "-0.0e5"), ("120", "1.2E+2"), ("0.001", "1e-3")] {
        assert_eq!(n(a), n(b));
    }
    for (a, b) in [("1", "-1"), ("9007199254740993", "9007199254740992"), ("1e400", "1e401"), ("1e99999999999999999999", "1e-99999999999999999999")] {
        assert_ne!(n(a), n(b));
    }
    for (text, want) in [
        ("12.0", Some(12)), ("1.2e1", Some(12)), ("-0.0", Some(0)), ("1.5", None), ("1e18", Some(1_000_000_000_000_000_000)), ("1e19", None),
        ("9223372036854775807", Some(i64::MAX)), ("-9223372036854775808", Some(i64::MIN)), ("9223372036854775808", None), ("1e999999999999", None),
    ] {
        assert_eq!(n(text).as_i64(), want, "{}", text);
    }
    for f in [0.1, -1.5, 1e300, 5e-324, 9007199254740991.0, 1e21, 1e-7] {
        let text = Value::from(f).to_json();
        assert_eq!(n(&text).as_f64(), Some(f), "{}", text);
    }
    assert_eq!(Value::from(f64::NAN), Value::Null);
    assert_eq!(n("1e400").as_f64(), None);
    assert!("0.25".parse::<Number>().is_ok() && "x".parse::<Number>().is_err() && "[1]".parse::<Number>().is_err());
}

#[test]
fn objects_are_equal_in_any_order() {
    let a = parse(r#"{"a":1,"b":[{"c":2,"d":3}]}"#).unwrap();
    assert_eq!(a, parse(r#"{"b":[{"d":3.0,"c":2}],"a":1}"#).unwrap());
    assert_ne!(a, parse(r#"{"a":1,"b":[{"c":2,"e":3}]}"#).unwrap());
    assert_ne!(a, parse(r#"{"a":1}"#).unwrap());
    assert_eq!(Value::Null.with("x", 1).with("x", 2).with_some("y", None::<i64>).to_json(), r#"{"x":2}"#);
}

#[test]
fn base64_comes_back() {
    for n in 0..40usize {
        let bytes: Vec<u8> = (0..n).map(|i| (i * 37 + n) as u8).collect();
        assert_eq!(decode(&encode(&bytes)), Some(bytes));
    }
    assert_eq!(encode(b"\x00\xff"), "AP8=");
    for text in ["A", "AP8", "AP8==", "=", "====", "A===", "A*8=", "A=P8"] {
        assert_eq!(decode(text), None, "{}", text);
    }
}

#[test]
fn errors_keep_what_they_say() {
    let text = r#"{"code":"unavailable","message":"busy","field":"url","retryAfterMs":1500,"permanent":true,"hint":"later"}"#;
    let error = Error::from_value(&parse(text).unwrap()).unwrap();
    assert_eq!(error.to_value().to_json(), text);
    assert_eq!(error.context("get").message, "get: busy");
    assert_eq!(Error::from_value(&object! { "code" => "made_up" }).unwrap().code, Code::Plugin);
    assert_eq!(Error::from_value(&Value::Null), None);
    assert_eq!(Error::bad_field("n", "is bad").retry_after(5).hint("h").to_value().to_json(),
        r#"{"code":"bad_fields","message":"n: is bad","field":"n","retryAfterMs":5,"permanent":true,"hint":"h"}"#);
    let own: Result<()> = (|| Err("no")?)();
    assert_eq!(own.unwrap_err().code, Code::Plugin);
}

#[test]
fn the_manifest_is_whole() {
    assert_eq!(
        plugin().manifest().unwrap(),
        r#"{"name":"probe","version":"1.2.3","abi":1,"steps":[{"type":"probe","summary":"Probes.","fields":"#.to_string() + FIELDS
            + r#","infer":["n"],"aliases":{"m":"n"},"readOnly":true}],"permissions":[{"use":"command","reason":"to \"read\"","names":["code/*"]}]}"#
    );
    for (bad, why) in [
        (Plugin::new("Probe", "1"), "describe plugin \"Probe\": want a name"),
        (Plugin::new("probe", "1").step(Step::new("a-b", "", FIELDS, run)), "describe step type \"a-b\": want a name"),
        (Plugin::new("probe", "1").step(Step::new("a", "", "{", run)), "describe schema of step type \"a\": json byte 1: expected a key"),
        (Plugin::new("probe", "1").step(Step::new("a", "", "{}", run)), "describe schema of step type \"a\": want \"type\": \"object\""),
    ] {
        let message = bad.manifest().unwrap_err().message.clone();
        assert!(message.starts_with(why), "{}", message);
    }
}

#[test]
fn steps_run_and_fail() {
    let out = |fields| testing::run(&plugin(), "probe", fields, &mut Script::new());
    assert_eq!(out(Value::object()), Ok(Value::from(7)));
    assert_eq!(out(object! { "n" => "12" }), Ok(Value::from(12)));
    assert_eq!(out(object! { "n" => 0 }).unwrap_err().message, "n: want at least 1, got 0");
    assert_eq!(out(object! { "n" => true }).unwrap_err().code, Code::BadFields);
    assert_eq!(out(object! { "n" => 99 }).unwrap_err().code, Code::Denied);

    let mut host = Script::new().answer("sentinel_command", object! { "lines" => list!["x"] });
    assert_eq!(testing::run(&plugin(), "probe", object! { "n" => 99 }, &mut host), Ok(object! { "lines" => list!["x"] }));
    assert_eq!(host.asked, vec![("sentinel_command".to_string(), object! { "command" => "code/read", "params" => object! { "path" => "a" } })]);

    for (input, message) in [("{", "run input: json byte 1"), ("{}", "run input: abi 0, want 1"), (r#"{"abi":1}"#, "type: plugin")] {
        let found = plugin().run(input, None).unwrap_err().message.clone();
        assert!(found.starts_with(message), "{}", found);
    }
}

/// A host with invalid answers.
struct Broken(&'static str);

impl testing::Host for Broken {
    fn call(&mut self, _: &str, _: &str) -> String {
        self.0.to_string()
    }
}

#[test]
fn broken_answers_are_the_hosts_fault() {
    for answer in ["", "{}", "[]", "null", "{\"ok\":", "{\"error\":null}"] {
        let error = testing::run(&plugin(), "probe", object! { "n" => 99 }, &mut Broken(answer)).unwrap_err();
        assert_eq!(error.code, Code::Internal, "{}", answer);
    }
    let null = testing::run(&plugin(), "probe", object! { "n" => 99 }, &mut Broken("{\"ok\":null}"));
    assert_eq!(null, Ok(object! { "lines" => Value::Null }));
}

#[test]
fn problems_are_told() {
    let check = |fields: &str| plugin().check(&format!(r#"{{"type":"probe","fields":{}}}"#, fields)).unwrap();
    assert_eq!(check(r#"{"n":13}"#), r#"{"problems":[{"field":"n","message":"brings bad luck","hint":"use 14"}]}"#);
    assert_eq!(check(r#"{"n":"$x"}"#), r#"{"problems":[]}"#);
    assert_eq!(Error::from(Problem::new("n", "is bad").hint("h")).hint.as_deref(), Some("h"));
}
