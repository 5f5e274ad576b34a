// The answers of the smaller host functions.
import { Value } from "./value";

/** Of an expression. */
export class Evaluated {
  value: Value;
  truthy: bool;

  constructor(v: Value) {
    this.value = v.get("value");
    this.truthy = v.get("truthy").asBool();
  }
}

export class Variable {
  value: Value;
  found: bool;

  constructor(v: Value) {
    this.value = v.get("value");
    this.found = v.get("found").asBool();
  }
}

/** A run that was started. */
export class Child {
  run: string;
  sentinel: string;

  constructor(v: Value) {
    this.run = v.get("run").asText();
    this.sentinel = v.get("sentinel").asText();
  }
}

/** The answer to a pending decision. */
export class Decision {
  approved: bool;
  by: string;
  /** RFC 3339. */
  at: string;
  comment: string;

  constructor(v: Value) {
    this.approved = v.get("verdict").asText() == "approve";
    this.by = v.get("by").asText();
    this.at = v.get("at").asText();
    this.comment = v.get("comment").asText();
  }
}

/** The result of a wait; the other members are absent or null. */
export class Waited {
  timedOut: bool;
  /** The event's record. */
  event: Value;
  /** Of the run, see clause A6.11. */
  result: Value;
  decision: Decision | null = null;

  constructor(v: Value) {
    this.timedOut = v.get("timedOut").asBool();
    this.event = v.get("event");
    this.result = v.get("result");
    if (v.get("decision").given) this.decision = new Decision(v.get("decision"));
  }
}

export class Line {
  text: string;
  classification: string;
  lineNumber: i64;
  stream: string;
  /** RFC 3339. */
  timestamp: string;

  constructor(v: Value) {
    this.text = v.get("text").asText();
    this.classification = v.get("classification").asText();
    this.lineNumber = v.get("lineNumber").asInt();
    this.stream = v.get("stream").asText();
    this.timestamp = v.get("timestamp").asText();
  }
}

/** The output of a shell execution. */
export class Watched {
  executionId: string;
  lines: Line[] = [];
  /** The lines for display. */
  text: string;
  finished: bool;
  /** A number, absent while the process runs and if it has none. */
  exitCode: Value;
  dropped: i64;
  cursor: i64;

  constructor(v: Value) {
    this.executionId = v.get("executionId").asText();
    this.text = v.get("text").asText();
    this.finished = v.get("finished").asBool();
    this.exitCode = v.get("exitCode");
    this.dropped = v.get("dropped").asInt();
    this.cursor = v.get("cursor").asInt();
    const lines = v.get("lines");
    for (let i = 0; i < lines.length; i++) this.lines.push(new Line(lines.at(i)));
  }
}

/** The host's time. */
export class Moment {
  unixMs: i64;
  /** RFC 3339. */
  iso: string;

  constructor(v: Value) {
    this.unixMs = v.get("unixMs").asInt();
    this.iso = v.get("iso").asText();
  }
}
