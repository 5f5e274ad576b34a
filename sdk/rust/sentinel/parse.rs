//! Reading JSON.

use super::{Number, Value};
use std::collections::BTreeSet;

/// The maximum nesting of lists and objects in a text that [`parse`] reads.
pub const MAX_DEPTH: usize = 256;

/// The first position at which a text is not JSON for [`parse`].
#[derive(Debug, PartialEq)]
pub struct SyntaxError {
    /// In bytes from the start.
    pub offset: usize,
    pub reason: &'static str,
}

impl std::fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "json byte {}: {}", self.offset, self.reason)
    }
}

/// Results of the parser, whose errors have a position.
type Parsed<T> = Result<T, SyntaxError>;

/// Reads one JSON text. It is strict: no duplicate names in an object, no text after
/// the value, no deeper than [`MAX_DEPTH`]. Half of a surrogate pair in an escape
/// becomes U+FFFD.
pub fn parse(text: &str) -> Parsed<Value> {
    let mut p = Parser { bytes: text.as_bytes(), text, pos: 0 };
    let value = p.document()?;
    match p.next() {
        None => Ok(value),
        Some(_) => p.fail("text after the value"),
    }
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    pos: usize,
}

/// A list or object that is being read.
enum Open {
    List(Vec<Value>),
    Object { fields: Vec<(String, Value)>, name: String, seen: BTreeSet<String> },
}

/// From this many fields on, names are looked up in a set: comparing all of them takes
/// seconds for the largest text that a host may send.
const INDEXED: usize = 16;

impl<'a> Parser<'a> {
    /// Ends the reading with an error at the current position.
    fn fail<T>(&self, reason: &'static str) -> Parsed<T> {
        Err(SyntaxError { offset: self.pos, reason })
    }

    /// The next byte that is not a space, without reading it.
    fn next(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.bytes.get(self.pos) {
            self.pos += 1;
        }
        self.bytes.get(self.pos).copied()
    }

    /// The text from start to here; both are ends of characters. An index would link
    /// the code for the message of a panic.
    fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.pos).unwrap_or("")
    }

    /// Skips that byte, if it is next.
    fn accept(&mut self, byte: u8) -> bool {
        let found = self.next() == Some(byte);
        self.pos += found as usize;
        found
    }

    /// Reads a value with an explicit stack: the stack of a guest has 64 KiB, which is
    /// too small for recursion.
    fn document(&mut self) -> Parsed<Value> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            let mut value = match self.next() {
                Some(b'[') | Some(b'{') if open.len() >= MAX_DEPTH => return self.fail("nested too deeply"),
                Some(b'[') => {
                    self.pos += 1;
                    if !self.accept(b']') {
                        open.push(Open::List(Vec::new()));
                        continue;
                    }
                    Value::List(Vec::new())
                }
                Some(b'{') => {
                    self.pos += 1;
                    if !self.accept(b'}') {
                        let name = self.name(&[], &mut BTreeSet::new())?;
                        open.push(Open::Object { fields: Vec::new(), name, seen: BTreeSet::new() });
                        continue;
                    }
                    Value::Object(Vec::new())
                }
                _ => self.scalar()?,
            };
            // The value ends here, and so may the values that contain it.
            loop {
                value = match open.pop() {
                    None => return Ok(value),
                    Some(Open::List(mut items)) => {
                        items.push(value);
                        if self.accept(b',') {
                            open.push(Open::List(items));
                            break;
                        }
                        if !self.accept(b']') {
                            return self.fail("expected , or ]");
                        }
                        Value::List(items)
                    }
                    Some(Open::Object { mut fields, name, mut seen }) => {
                        fields.push((name, value));
                        if self.accept(b',') {
                            let name = self.name(&fields, &mut seen)?;
                            open.push(Open::Object { fields, name, seen });
                            break;
                        }
                        if !self.accept(b'}') {
                            return self.fail("expected , or }");
                        }
                        Value::Object(fields)
                    }
                };
            }
        }
    }

    /// Reads a field's name and the colon.
    fn name(&mut self, fields: &[(String, Value)], seen: &mut BTreeSet<String>) -> Parsed<String> {
        if self.next() != Some(b'"') {
            return self.fail("expected a key");
        }
        let at = self.pos;
        let name = self.string()?;
        if fields.len() == INDEXED {
            seen.extend(fields.iter().map(|(name, _)| name.clone()));
        }
        let twice = if fields.len() < INDEXED { fields.iter().any(|(other, _)| *other == name) } else { !seen.insert(name.clone()) };
        if twice {
            return Err(SyntaxError { offset: at, reason: "duplicate key" });
        }
        if !self.accept(b':') {
            return self.fail("expected :");
        }
        Ok(name)
    }

    /// Reads a value that is not a list or an object.
    fn scalar(&mut self) -> Parsed<Value> {
        match self.next() {
            Some(b'"') => return Ok(Value::Text(self.string()?)),
            Some(b'-' | b'0'..=b'9') => return self.number(),
            None => return self.fail("unexpected end"),
            _ => {}
        }
        for (word, value) in [("true", Value::Bool(true)), ("false", Value::Bool(false)), ("null", Value::Null)] {
            if self.bytes[self.pos..].starts_with(word.as_bytes()) {
                self.pos += word.len();
                return Ok(value);
            }
        }
        self.fail("expected a value")
    }

    /// Skips one digit or more.
    fn digits(&mut self) -> Parsed<()> {
        let start = self.pos;
        while let Some(b'0'..=b'9') = self.bytes.get(self.pos) {
            self.pos += 1;
        }
        if self.pos == start {
            return self.fail("expected a digit");
        }
        Ok(())
    }

    /// Reads a JSON number: no plus, no leading zeros, digits on both
    /// sides of a point. Its text is kept.
    fn number(&mut self) -> Parsed<Value> {
        let start = self.pos;
        self.pos += (self.bytes[self.pos] == b'-') as usize;
        if self.bytes.get(self.pos) == Some(&b'0') {
            self.pos += 1;
        } else {
            self.digits()?;
        }
        if self.bytes.get(self.pos) == Some(&b'.') {
            self.pos += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.pos) {
            self.pos += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.pos) {
                self.pos += 1;
            }
            self.digits()?;
        }
        Ok(Value::Number(Number::from_text(self.since(start))))
    }

    /// Reads a string, from its quote. Sequences of plain characters are copied at
    /// once.
    fn string(&mut self) -> Parsed<String> {
        self.pos += 1;
        let mut out = String::new();
        let mut start = self.pos;
        loop {
            match self.bytes.get(self.pos) {
                None => return self.fail("string without an end"),
                Some(b'"') => {
                    out.push_str(self.since(start));
                    self.pos += 1;
                    return Ok(out);
                }
                Some(b'\\') => {
                    out.push_str(self.since(start));
                    self.pos += 1;
                    out.push(self.escape()?);
                    start = self.pos;
                }
                Some(0..=0x1f) => return self.fail("control character in a string"),
                Some(_) => self.pos += 1,
            }
        }
    }

    /// Reads an escape, from the character after the backslash.
    fn escape(&mut self) -> Parsed<char> {
        let c = match self.bytes.get(self.pos) {
            None => return self.fail("unexpected end"),
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                return match self.hex(self.pos + 1) {
                    None => self.fail("expected four hex digits"),
                    Some(unit) => {
                        self.pos += 5;
                        Ok(self.pair(unit))
                    }
                };
            }
            Some(_) => return self.fail("unknown escape"),
        };
        self.pos += 1;
        Ok(c)
    }

    /// Joins a high surrogate with the low one in the escape that follows.
    fn pair(&mut self, unit: u32) -> char {
        if (0xd800..0xdc00).contains(&unit) && self.bytes[self.pos..].starts_with(b"\\u") {
            if let Some(low @ 0xdc00..=0xdfff) = self.hex(self.pos + 2) {
                self.pos += 6;
                return char::from_u32(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00)).unwrap_or('\u{fffd}');
            }
        }
        char::from_u32(unit).unwrap_or('\u{fffd}')
    }

    /// The four hex digits at a position.
    fn hex(&self, at: usize) -> Option<u32> {
        let digits = self.bytes.get(at..at + 4)?;
        digits.iter().try_fold(0, |n, b| Some(n << 4 | (*b as char).to_digit(16)?))
    }
}
