import { Whole } from "./number";
import { print } from "./print";

// Kind is the type of a Value. Absent is a field that is not given.
export const enum Kind { Absent, Null, Bool, Number, Text, List, Object }

const none: Value[] = [];
const noKeys: string[] = [];

// A Value is one JSON value. set and push omit an absent value, so that optional fields
// need no branches. Numbers keep their text, so that no digits are lost; objects keep
// the order of their fields.
export class Value {
  /** Of a text, number or boolean. */
  text: string = "";
  /** Of an object, beside items. */
  keys: string[] = noKeys;
  /** Of a list or an object. */
  items: Value[] = none;

  constructor(public kind: Kind) {}

  /** Whether it is not absent; null exists. */
  get exists(): bool { return this.kind != Kind.Absent; }
  /** Whether it is neither absent nor null. */
  get given(): bool { return this.kind > Kind.Null; }
  /** The number of items of a list or fields of an object. */
  get length(): i32 { return this.items.length; }

  /** The field of an object, absent if there is none. If a name is repeated, the last one is used. */
  get(name: string): Value {
    for (let i = this.keys.length - 1; i >= 0; i--) if (this.keys[i] == name) return this.items[i];
    return absent;
  }

  /** The i-th item, absent if there is none. */
  at(i: i32): Value {
    return i >= 0 && i < this.items.length ? this.items[i] : absent;
  }

  /** The value of a text, or the fallback. */
  asText(fallback: string = ""): string {
    return this.kind == Kind.Text ? this.text : fallback;
  }

  /** Whether it is a whole number that fits an i64. */
  get isInt(): bool {
    if (this.kind != Kind.Number) return false;
    const n = new Whole(this.text);
    return n.fits && !n.fraction;
  }

  /** A number without its fraction, else the fallback. One beyond an i64 is a RangeError, which ends the plugin: ask isInt where that may come. */
  asInt(fallback: i64 = 0): i64 {
    if (this.kind != Kind.Number) return fallback;
    const n = new Whole(this.text);
    if (!n.fits) throw new RangeError(this.text + " is beyond what an i64 holds");
    return n.value;
  }

  /** A number, or the fallback. */
  asFloat(fallback: f64 = 0): f64 {
    return this.kind == Kind.Number ? parseFloat(this.text) : fallback;
  }

  /** A boolean, or the fallback. */
  asBool(fallback: bool = false): bool {
    return this.kind == Kind.Bool ? this.text == "true" : fallback;
  }

  /** The texts of a list; other items are omitted. */
  asTexts(): string[] {
    const list: string[] = [];
    for (let i = 0; i < this.items.length; i++) if (this.items[i].kind == Kind.Text) list.push(this.items[i].text);
    return list;
  }

  /** Adds a field to an object that object() made, or replaces it, and returns the object. */
  set(name: string, value: Value): Value {
    if (!value.exists) return this;
    const i = this.keys.indexOf(name);
    if (i >= 0) {
      this.items[i] = value;
    } else {
      this.keys.push(name);
      this.items.push(value);
    }
    return this;
  }

  /** Adds an item to a list that list() made, and returns the list. */
  push(value: Value): Value {
    if (value.exists) this.items.push(value);
    return this;
  }

  /** The JSON text. */
  toString(): string { return print(this); }
}

/** A field that is not given. */
export const absent = new Value(Kind.Absent);

export function nul(): Value { return new Value(Kind.Null); }

export function text(s: string): Value {
  const v = new Value(Kind.Text);
  v.text = s;
  return v;
}

/** A text, or an absent value for an empty one. */
export function optional(s: string): Value {
  return s.length ? text(s) : absent;
}

export function bool_(b: bool): Value {
  const v = new Value(Kind.Bool);
  v.text = b ? "true" : "false";
  return v;
}

/** True, or an absent value for false. */
export function flag(b: bool): Value {
  return b ? bool_(true) : absent;
}

export function number(text: string): Value {
  const v = new Value(Kind.Number);
  v.text = text;
  return v;
}

export function int(n: i64): Value { return number(n.toString()); }

/** A number, or an absent value for 0. */
export function count(n: i64): Value { return n ? int(n) : absent; }

/** A number, or null for NaN and infinities, which JSON does not have. */
export function float(n: f64): Value {
  if (!isFinite(n)) return nul();
  if (n == Math.trunc(n) && Math.abs(n) < 9007199254740992) return int(<i64>n);
  return number(n.toString());
}

export function object(): Value {
  const v = new Value(Kind.Object);
  v.keys = [];
  v.items = [];
  return v;
}

export function list(): Value {
  const v = new Value(Kind.List);
  v.items = [];
  return v;
}

export function texts(words: string[]): Value {
  const v = list();
  for (let i = 0; i < words.length; i++) v.push(text(words[i]));
  return v;
}

/** The value, or null if it is absent. */
export function orNull(v: Value): Value { return v.exists ? v : nul(); }
