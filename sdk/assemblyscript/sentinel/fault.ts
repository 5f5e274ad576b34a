import { Value, count, flag, object, optional, text } from "./value";

// Code is the list of error codes, see sdk/ABI.md A5. Only the host uses trap, memory,
// output and internal.
export namespace Code {
  export const BadFields = "bad_fields";
  export const Denied = "denied";
  export const NotFound = "not_found";
  export const Conflict = "conflict";
  export const Timeout = "timeout";
  export const Cancelled = "cancelled";
  export const Unavailable = "unavailable";
  export const Limit = "limit";
  export const Trap = "trap";
  export const Memory = "memory";
  export const Output = "output";
  export const Plugin = "plugin";
  export const Interrupted = "interrupted";
  export const Internal = "internal";
}

const codes: string[] = [
  Code.BadFields, Code.Denied, Code.NotFound, Code.Conflict, Code.Timeout, Code.Cancelled, Code.Unavailable, Code.Limit,
  Code.Trap, Code.Memory, Code.Output, Code.Plugin, Code.Interrupted, Code.Internal,
];

// A Fault is an error of the host or of a step. The language has no exceptions, so it is
// part of an Outcome.
export class Fault {
  /** The invalid field: "params.path". */
  field: string = "";
  /** The delay before the next attempt; 0 is none. */
  retryAfterMs: i64 = 0;
  /** A retry cannot help. */
  permanent: bool = false;
  /** What to do next, for users. */
  hint: string = "";

  constructor(public code: string, public message: string) {}

  withHint(hint: string): Fault {
    this.hint = hint;
    return this;
  }

  asPermanent(): Fault {
    this.permanent = true;
    return this;
  }

  retryAfter(ms: i64): Fault {
    this.retryAfterMs = ms;
    return this;
  }

  /** Adds a prefix to the message and keeps the rest. */
  during(op: string): Fault {
    this.message = op + ": " + this.message;
    return this;
  }

  toValue(): Value {
    return object().set("code", text(this.code)).set("message", text(this.message)).set("field", optional(this.field))
      .set("retryAfterMs", count(this.retryAfterMs)).set("permanent", flag(this.permanent)).set("hint", optional(this.hint));
  }

  /** Reads an error object; an unknown code becomes plugin. */
  static from(v: Value): Fault {
    const code = v.get("code").asText();
    const f = new Fault(codes.includes(code) ? code : Code.Plugin, v.get("message").asText("unknown error"));
    f.field = v.get("field").asText();
    f.retryAfterMs = v.get("retryAfterMs").asInt();
    f.permanent = v.get("permanent").asBool();
    f.hint = v.get("hint").asText();
    return f;
  }
}

/** The error for an invalid field of the step. */
export function badField(field: string, message: string): Fault {
  const f = new Fault(Code.BadFields, field + ": " + message);
  f.field = field;
  f.permanent = true;
  return f;
}

// An Outcome is a value or a fault. Check failed before value: reading the value of a
// failed outcome ends the plugin.
export class Outcome<T> {
  constructor(private got: T | null, private wrong: Fault | null) {}

  get failed(): bool { return this.wrong !== null; }
  get value(): T { return this.got!; }
  get fault(): Fault { return this.wrong!; }

  /** The fault as an outcome of another type, to return it. */
  as<U>(): Outcome<U> { return new Outcome<U>(null, this.wrong); }

  static of<T>(value: T): Outcome<T> { return new Outcome<T>(value, null); }
  static fail<T>(fault: Fault): Outcome<T> { return new Outcome<T>(null, fault); }
}

/** A step's output. */
export function ok(output: Value): Outcome<Value> { return new Outcome<Value>(output, null); }

/** A step's error. */
export function fail(code: string, message: string): Outcome<Value> {
  return new Outcome<Value>(null, new Fault(code, message));
}
