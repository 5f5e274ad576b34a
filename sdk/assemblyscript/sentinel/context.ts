import { Block, BlockOptions, BlockResult, blockResults } from "./block";
import { FileRequest, FileRead, FileStat, Listing } from "./file";
import { Code, Fault, Outcome, ok } from "./fault";
import {
  hostBlock, hostCheckpoint, hostCommand, hostEmit, hostEval, hostFile, hostHTTP, hostLLM, hostLog, hostNow, hostSpawn, hostVar,
  hostWait, hostWatch,
} from "./host";
import { Request, Response } from "./http";
import { HostFunction, exchange } from "./kernel";
import { Reply, Turn } from "./llm";
import { parse } from "./parse";
import { Value, absent, count, flag, int, list, object, optional, orNull, text, texts } from "./value";
import { Child, Decision, Evaluated, Moment, Variable, Waited, Watched } from "./answers";

/** Identifies the step. */
export class StepInfo {
  type: string;
  /** Empty if the definition has none. */
  id: string;
  /** Empty if the definition has none. */
  name: string;
  /** Position in the definition: "3.then.0". */
  address: string;
  /** Position in the run: "1#7.steps.0". */
  path: string;

  constructor(v: Value) {
    this.type = v.get("type").asText();
    this.id = v.get("id").asText();
    this.name = v.get("name").asText();
    this.address = v.get("address").asText();
    this.path = v.get("path").asText();
  }
}

/** Identifies the run of the step. */
export class RunInfo {
  id: string;
  sentinel: string;
  /** From 1. */
  iteration: i64;
  /** For messages: a guest has no files. */
  workspace: string;
  /** Idempotency key of this step execution, equal for all attempts. */
  key: string;

  constructor(v: Value) {
    this.id = v.get("id").asText();
    this.sentinel = v.get("sentinel").asText();
    this.iteration = v.get("iteration").asInt(1);
    this.workspace = v.get("workspace").asText();
    this.key = v.get("key").asText();
  }
}

/** Describes the attempt before. */
export class Retry {
  attempts: i64;
  error: Fault;
  category: string;

  constructor(v: Value) {
    this.attempts = v.get("attempts").asInt();
    this.error = Fault.from(v.get("error"));
    this.category = v.get("category").asText();
  }
}

// A Context is one attempt of one step: its input, and access to the host. Each method
// that calls the host blocks until the answer arrives. The module may be unloaded
// meanwhile and executed again from its start; calls that have been answered then return
// the same answer at once. So the calls of a step must depend only on its fields and on
// the answers.
export class Context {
  step: StepInfo;
  run: RunInfo;
  /** From 1. */
  attempt: i64;
  /** Of the attempt before; null for the first attempt. */
  retry: Retry | null = null;
  /** The value of this attempt's last checkpoint, absent if there was none. */
  state: Value;
  /** The step's own fields, with references replaced and the types of the schema. */
  fields: Value;

  constructor(input: Value) {
    const step = input.get("step");
    this.step = new StepInfo(step);
    this.run = new RunInfo(input.get("run"));
    this.attempt = input.get("attempt").asInt(1);
    this.state = input.get("state");
    this.fields = step.get("fields");
    if (input.get("retry").given) this.retry = new Retry(input.get("retry"));
  }

  /** One of the fields, absent if it is not given. */
  field(name: string): Value { return this.fields.get(name); }

  /** Calls a command (A6.3, permission "command"). A command that ran and found a failure returns a result. */
  command(name: string, params: Value = absent): Outcome<Value> {
    return call(hostCommand, "command", object().set("command", text(name)).set("params", params));
  }

  /** Calls a command that a model has requested: the host checks it against tools; without tools, all public commands are allowed. */
  toolCommand(name: string, args: Value, tools: string[] = []): Outcome<Value> {
    return call(hostCommand, "command", object().set("command", text(name)).set("params", args).set("by", text("model"))
      .set("tools", tools.length ? texts(tools) : absent));
  }

  /** One turn of a model (A6.4, permission "llm"). */
  llm(turn: Turn): Outcome<Reply> {
    const r = call(hostLLM, "llm", turn.toValue());
    return r.failed ? r.as<Reply>() : Outcome.of(new Reply(r.value));
  }

  /** Waits for lines of a shell execution (A6.5, permission "watch"). Until is "finished", "error" or "match"; rules is a list as the clause has it, or absent. */
  watch(executionId: string, until: string = "", rules: Value = absent): Outcome<Watched> {
    const r = call(hostWatch, "watch", object().set("executionId", text(executionId)).set("rules", rules).set("until", optional(until)));
    return r.failed ? r.as<Watched>() : Outcome.of(new Watched(r.value));
  }

  /** Evaluates a condition over the variables; vars, an object, shadows them (A6.6). */
  eval(expression: string, vars: Value = absent): Outcome<Evaluated> {
    const r = call(hostEval, "eval", object().set("expression", text(expression)).set("vars", vars));
    return r.failed ? r.as<Evaluated>() : Outcome.of(new Evaluated(r.value));
  }

  /** Reads a variable by its path: "build.lines[0]" (A6.7). */
  getVar(path: string): Outcome<Variable> {
    const r = call(hostVar, "var", object().set("get", text(path)));
    return r.failed ? r.as<Variable>() : Outcome.of(new Variable(r.value));
  }

  setVar(name: string, value: Value): Outcome<Value> { return this.setVars(object().set(name, orNull(value))); }

  /** Sets variables, an object of them. */
  setVars(values: Value): Outcome<Value> { return call(hostVar, "var", object().set("set", values)); }

  /** Runs nested steps in the scope of the step and returns the output of the last one, or the fault that ended them (A6.8). */
  block(field: string, vars: Value = absent): Outcome<Value> {
    const r = this.blocks([new Block(field, vars)]);
    if (r.failed) return r.as<Value>();
    const fault = r.value[0].fault;
    return fault !== null ? Outcome.fail<Value>(fault) : ok(r.value[0].output);
  }

  /** Runs several blocks as parallel branches, each on a snapshot of the variables. The results are in the order of the blocks. */
  blocks(blocks: Block[], options: BlockOptions = new BlockOptions()): Outcome<BlockResult[]> {
    const items = list();
    for (let i = 0; i < blocks.length; i++) items.push(object().set("field", text(blocks[i].field)).set("vars", blocks[i].vars));
    const r = call(hostBlock, "block", object().set("blocks", items).set("failFast", flag(options.failFast)).set("drain", flag(options.drain))
      .set("isolated", flag(options.isolated)).set("concurrency", count(options.concurrency)).set("total", count(options.total)));
    return r.failed ? r.as<BlockResult[]>() : blockResults(r.value.get("blocks"), blocks.length);
  }

  /** Starts a child run of the definition in a field, exactly once (A6.9, permission "spawn"). */
  spawn(field: string, inputs: Value = absent): Outcome<Child> {
    return child(object().set("field", text(field)).set("inputs", inputs));
  }

  /** Starts a child run of the sentinel with that id. */
  spawnNamed(sentinel: string, inputs: Value = absent): Outcome<Child> {
    return child(object().set("sentinel", text(sentinel)).set("inputs", inputs));
  }

  /** Publishes an event and returns its id (A6.10, permission "emit"). */
  emit(event: string, data: Value = absent): Outcome<string> {
    const r = call(hostEmit, "emit", object().set("event", text(event)).set("data", data));
    return r.failed ? r.as<string>() : Outcome.of(r.value.get("id").asText());
  }

  /** Waits as in clause A6.11; a timeout is an answer here, and a fault with code timeout in the methods below. */
  wait(request: Value): Outcome<Waited> {
    const r = call(hostWait, "wait", request);
    return r.failed ? r.as<Waited>() : Outcome.of(new Waited(r.value));
  }

  sleep(ms: i64): Outcome<Waited> { return this.expect(object().set("durationMs", int(ms)), 0); }

  /** Waits until a time, RFC 3339. */
  waitUntil(moment: string): Outcome<Waited> { return this.expect(object().set("until", text(moment)), 0); }

  /** Waits for the next event that matches the pattern and returns its record. A timeoutMs of 0 is none. */
  waitEvent(pattern: string, timeoutMs: i64 = 0): Outcome<Value> {
    const r = this.expect(object().set("event", text(pattern)), timeoutMs);
    return r.failed ? r.as<Value>() : ok(r.value.event);
  }

  /** Waits until a run has ended and returns its result. The failure of the run is a result. */
  waitRun(run: string, timeoutMs: i64 = 0): Outcome<Value> {
    const r = this.expect(object().set("run", text(run)), timeoutMs);
    return r.failed ? r.as<Value>() : ok(r.value.result);
  }

  /** Waits for a decision; without approvers, any user may decide who is allowed to. callKind is the kind of calls that an approval covers. */
  decide(prompt: string, approvers: string[] = [], timeoutMs: i64 = 0, callKind: string = ""): Outcome<Decision> {
    const ask = object().set("prompt", text(prompt)).set("approvers", approvers.length ? texts(approvers) : absent).set("callKind", optional(callKind));
    const r = this.expect(object().set("decision", ask), timeoutMs);
    return r.failed ? r.as<Decision>() : Outcome.of(r.value.decision!);
  }

  private expect(request: Value, timeoutMs: i64): Outcome<Waited> {
    const r = this.wait(request.set("timeoutMs", count(timeoutMs)));
    return !r.failed && r.value.timedOut ? Outcome.fail<Waited>(new Fault(Code.Timeout, "wait: time limit reached")) : r;
  }

  /** Limits what a replay of this attempt repeats: the next replay starts with state, and must continue from there (A6.12). */
  checkpoint(state: Value): Outcome<Value> { return call(hostCheckpoint, "checkpoint", object().set("state", orNull(state))); }

  /** Sends a request (A6.13, permission "http"). A status of 400 or more is a response. */
  http(request: Request): Outcome<Response> {
    const r = call(hostHTTP, "http", request.toValue());
    return r.failed ? r.as<Response>() : Outcome.of(new Response(r.value));
  }

  /** Works on files as in clause A6.16 (permission "folder"); the methods below do the same with types. */
  file(request: FileRequest): Outcome<Value> { return call(hostFile, "file", request.toValue()); }

  readFile(folder: string, path: string, offset: i64 = 0, length: i64 = 0): Outcome<FileRead> {
    const q = new FileRequest(folder, "read", path);
    q.offset = offset;
    q.length = length;
    const r = this.file(q);
    return r.failed ? r.as<FileRead>() : Outcome.of(new FileRead(r.value));
  }

  /** Replaces a file atomically and returns its size; encoding is "base64" or empty. */
  writeFile(folder: string, path: string, content: string, encoding: string = ""): Outcome<Value> {
    const q = new FileRequest(folder, "write", path);
    q.text = text(content);
    q.encoding = encoding;
    return this.file(q);
  }

  listFiles(folder: string, path: string = "", offset: i64 = 0): Outcome<Listing> {
    const q = new FileRequest(folder, "list", path);
    q.offset = offset;
    const r = this.file(q);
    return r.failed ? r.as<Listing>() : Outcome.of(new Listing(r.value));
  }

  stat(folder: string, path: string = ""): Outcome<FileStat> {
    const r = this.file(new FileRequest(folder, "stat", path));
    return r.failed ? r.as<FileStat>() : Outcome.of(new FileStat(r.value));
  }

  removeFile(folder: string, path: string): Outcome<Value> { return this.file(new FileRequest(folder, "remove", path)); }

  /** Writes to the run log (A6.14). Logging never fails a step: a line above the limit is dropped. */
  debug(message: string): void { this.log("debug", message); }
  info(message: string): void { this.log("info", message); }
  warn(message: string): void { this.log("warn", message); }
  error(message: string): void { this.log("error", message); }

  log(level: string, message: string): void {
    call(hostLog, "log", object().set("level", text(level)).set("message", text(message)));
  }

  /** The host's time, recorded (A6.15). */
  now(): Outcome<Moment> {
    const r = call(hostNow, "now", object());
    return r.failed ? r.as<Moment>() : Outcome.of(new Moment(r.value));
  }

  /** The number of steps in a field with the mark steps. */
  steps(field: string): i64 { return this.field(field).get("count").asInt(); }

  /** The number of branches in a field with the mark branches. */
  branches(field: string): i32 { return this.field(field).get("counts").length; }
}

// call makes one host call. Each method names its own import, so that a module imports
// only those that its code uses.
function call(f: HostFunction, name: string, request: Value): Outcome<Value> {
  const answer = parse(exchange(f, request.toString()));
  if (answer.failed) return Outcome.fail<Value>(new Fault(Code.Internal, "sentinel_" + name + ": answer: " + answer.fault.message));
  const fault = answer.value.get("error");
  if (fault.given) return Outcome.fail<Value>(Fault.from(fault));
  const value = answer.value.get("ok");
  return value.exists ? ok(value) : fail_(name);
}

function fail_(name: string): Outcome<Value> {
  return Outcome.fail<Value>(new Fault(Code.Internal, "sentinel_" + name + ": answer: neither ok nor error"));
}

function child(request: Value): Outcome<Child> {
  const r = call(hostSpawn, "spawn", request);
  return r.failed ? r.as<Child>() : Outcome.of(new Child(r.value));
}
