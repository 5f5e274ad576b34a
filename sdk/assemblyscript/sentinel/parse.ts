import { Fault, Outcome, Code } from "./fault";
import { Value, absent, bool_, list, nul, number, object, text } from "./value";

// maxDepth limits the nesting of parsed texts: each level is a call.
const maxDepth = 512;

/** Reads one JSON text. */
export function parse(source: string): Outcome<Value> {
  const p = new Parser(source);
  const v = p.value(0);
  p.space();
  if (!p.wrong.length && p.at < source.length) p.fail("more than one value");
  if (p.wrong.length) return Outcome.fail<Value>(new Fault(Code.BadFields, "parse JSON: " + p.wrong));
  return Outcome.of(v);
}

class Parser {
  at: i32 = 0;
  wrong: string = ""; // the first error; the parser stops after it

  constructor(private source: string) {}

  fail(what: string): Value {
    if (!this.wrong.length) this.wrong = what + " at character " + this.at.toString();
    this.at = this.source.length;
    return absent;
  }

  peek(): i32 {
    return this.at < this.source.length ? this.source.charCodeAt(this.at) : -1;
  }

  space(): void {
    for (;;) {
      const c = this.peek();
      if (c != 0x20 && c != 0x0a && c != 0x0d && c != 0x09) return;
      this.at++;
    }
  }

  // after skips space and then the character c, if it is next.
  after(c: i32): bool {
    this.space();
    if (this.peek() != c) return false;
    this.at++;
    return true;
  }

  word(w: string, v: Value): Value {
    if (this.source.substr(this.at, w.length) != w) return this.fail("no value");
    this.at += w.length;
    return v;
  }

  value(depth: i32): Value {
    if (depth > maxDepth) return this.fail("nested too deep");
    this.space();
    switch (this.peek()) {
      case 0x22: return text(this.string());
      case 0x7b: return this.object(depth);
      case 0x5b: return this.list(depth);
      case 0x74: return this.word("true", bool_(true));
      case 0x66: return this.word("false", bool_(false));
      case 0x6e: return this.word("null", nul());
    }
    return this.number();
  }

  list(depth: i32): Value {
    const v = list();
    this.at++;
    if (this.after(0x5d)) return v;
    while (!this.wrong.length) {
      v.push(this.value(depth + 1));
      if (this.after(0x5d)) return v;
      if (!this.after(0x2c)) this.fail("want , or ]");
    }
    return absent;
  }

  object(depth: i32): Value {
    const v = object();
    this.at++;
    if (this.after(0x7d)) return v;
    while (!this.wrong.length) {
      this.space();
      if (this.peek() != 0x22) return this.fail("want a name");
      const name = this.string();
      if (!this.after(0x3a)) return this.fail("want :");
      const item = this.value(depth + 1);
      // Not set(), which would search for the name: the last one is used anyway.
      v.keys.push(name);
      v.items.push(item);
      if (this.after(0x7d)) return v;
      if (!this.after(0x2c)) this.fail("want , or }");
    }
    return absent;
  }

  digits(): i32 {
    const start = this.at;
    while (this.peek() >= 0x30 && this.peek() <= 0x39) this.at++;
    return this.at - start;
  }

  number(): Value {
    const start = this.at;
    if (this.peek() == 0x2d) this.at++;
    const zero = this.peek() == 0x30;
    const whole = this.digits();
    if (!whole || (zero && whole > 1)) return this.fail("no value");
    if (this.peek() == 0x2e) {
      this.at++;
      if (!this.digits()) return this.fail("no digit behind the point");
    }
    if (this.peek() == 0x65 || this.peek() == 0x45) {
      this.at++;
      if (this.peek() == 0x2b || this.peek() == 0x2d) this.at++;
      if (!this.digits()) return this.fail("no digit in the exponent");
    }
    return number(this.source.substring(start, this.at));
  }

  // string reads a text; the character at its start is the quote.
  string(): string {
    const source = this.source;
    let start = ++this.at;
    let out = "";
    for (; this.at < source.length; this.at++) {
      const c = source.charCodeAt(this.at);
      if (c == 0x22) {
        const rest = source.substring(start, this.at++);
        return out.length ? out + rest : rest;
      }
      if (c < 0x20) break;
      if (c != 0x5c) continue;
      out += source.substring(start, this.at);
      out += this.escaped();
      start = this.at + 1;
    }
    this.fail("a text does not end");
    return "";
  }

  // escaped reads an escape after the backslash, up to its last character.
  escaped(): string {
    this.at++;
    switch (this.peek()) {
      case 0x22: return '"';
      case 0x5c: return "\\";
      case 0x2f: return "/";
      case 0x62: return "\b";
      case 0x66: return "\f";
      case 0x6e: return "\n";
      case 0x72: return "\r";
      case 0x74: return "\t";
      case 0x75: {
        let code = 0;
        for (let i = 0; i < 4; i++) {
          this.at++;
          const c = this.peek();
          const digit = c >= 0x30 && c <= 0x39 ? c - 0x30 : (c | 32) >= 0x61 && (c | 32) <= 0x66 ? (c | 32) - 0x57 : -1;
          if (digit < 0) {
            this.fail("want four digits behind \\u");
            return "";
          }
          code = code << 4 | digit;
        }
        return String.fromCharCode(code);
      }
    }
    this.fail("invalid escape");
    return "";
  }
}
