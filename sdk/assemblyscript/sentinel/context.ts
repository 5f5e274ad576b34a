import { Block, BlockResult, blockResults } from "./block";
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

/** Which step runs. */
export class StepInfo {
  type: string;
  /** Empty if the definition gives none. */
  id: string;
  /** Likewise. */
  name: string;
  /** Place in the definition: "3.then.0". */
  address: string;
  /** Place in the run: "1#7.steps.0". */
  path: string;

  constructor(v: Value) {
    this.type = v.get("type").asText();
    this.id = v.get("id").asText();
    this.name = v.get("name").asText();
    this.address = v.get("address").asText();
    this.path = v.get("path").asText();
  }
}

/** Which run the step belongs to. */
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

/** What is known of the attempt before. */
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

// A Context is one attempt of one step: its input, and the host that answers. Each
// method that calls the host blocks until the answer is there. The module may be
// unloaded meanwhile and run again from its start; calls that had an answer then
// get the same one at once. So what a step asks for must depend on nothing but its
// fields and the answers.
export class Context {
  step: StepInfo;
  run: RunInfo;
  /** From 1. */
  attempt: i64;
  /** Of the attempt before; null at the first. */
  retry: Retry | null = null;
  /** The value of this attempt's last checkpoint, absent if there was none. */
  state: Value;
  /** The step's own fields, references replaced, of the types that the schema says. */
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

  /** Calls a command (A6.3, asks "command"). One that ran and found something bad is a result. */
  command(name: string, params: Value = absent): Outcome<Value> {
    return call(hostCommand, "command", object().set("command", text(name)).set("params", params));
  }

  /** Calls a command as the wish of a model: the host holds it to tools; no tools are every public command. */
  toolCommand(name: string, args: Value, tools: string[] = []): Outcome<Value> {
    return call(hostCommand, "command", object().set("command", text(name)).set("params", args).set("by", text("model"))
      .set("tools", tools.length ? texts(tools) : absent));
  }

  /** One turn of a model (A6.4, asks "llm"). */
  llm(turn: Turn): Outcome<Reply> {
    const r = call(hostLLM, "llm", turn.toValue());
    return r.failed ? r.as<Reply>() : Outcome.of(new Reply(r.value));
  }

  /** Blocks until lines of a shell execution are there (A6.5, asks "watch"). Until is "finished", "error" or "match"; rules is a list as the clause has it, or absent. */
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

  /** Runs several blocks as parallel branches, each on a snapshot of the variables; concurrency 0 is all at once. The results are in the order of the blocks. */
  blocks(blocks: Block[], failFast: bool = false, concurrency: i64 = 0): Outcome<BlockResult[]> {
    const items = list();
    for (let i = 0; i < blocks.length; i++) items.push(object().set("field", text(blocks[i].field)).set("vars", blocks[i].vars));
    const r = call(hostBlock, "block", object().set("blocks", items).set("failFast", flag(failFast)).set("concurrency", count(concurrency)));
    return r.failed ? r.as<BlockResult[]>() : blockResults(r.value.get("blocks"), blocks.length);
  }

  /** Starts the run of the definition in a field, once (A6.9, asks "spawn"). */
  spawn(field: string, inputs: Value = absent): Outcome<Child> {
    return child(object().set("field", text(field)).set("inputs", inputs));
  }

  /** Starts a run of the sentinel with that id. */
  spawnNamed(sentinel: string, inputs: Value = absent): Outcome<Child> {
    return child(object().set("sentinel", text(sentinel)).set("inputs", inputs));
  }

  /** Publishes an event and returns its id (A6.10, asks "emit"). */
  emit(event: string, data: Value = absent): Outcome<string> {
    const r = call(hostEmit, "emit", object().set("event", text(event)).set("data", data));
    return r.failed ? r.as<string>() : Outcome.of(r.value.get("id").asText());
  }

  /** Waits as clause A6.11 has it; the end of timeoutMs is an answer here, and a fault with code timeout in the methods below. */
  wait(request: Value): Outcome<Waited> {
    const r = call(hostWait, "wait", request);
    return r.failed ? r.as<Waited>() : Outcome.of(new Waited(r.value));
  }

  sleep(ms: i64): Outcome<Waited> { return this.expect(object().set("durationMs", int(ms)), 0); }

  /** Waits for a moment, RFC 3339. */
  waitUntil(moment: string): Outcome<Waited> { return this.expect(object().set("until", text(moment)), 0); }

  /** Waits for the next event that fits the pattern and returns its record. A timeoutMs of 0 is none. */
  waitEvent(pattern: string, timeoutMs: i64 = 0): Outcome<Value> {
    const r = this.expect(object().set("event", text(pattern)), timeoutMs);
    return r.failed ? r.as<Value>() : ok(r.value.event);
  }

  /** Waits until a run has ended and returns its result. A run that failed is a result. */
  waitRun(run: string, timeoutMs: i64 = 0): Outcome<Value> {
    const r = this.expect(object().set("run", text(run)), timeoutMs);
    return r.failed ? r.as<Value>() : ok(r.value.result);
  }

  /** Asks a person; no approvers are anyone who may decide. */
  decide(prompt: string, approvers: string[] = [], timeoutMs: i64 = 0): Outcome<Decision> {
    const ask = object().set("prompt", text(prompt)).set("approvers", approvers.length ? texts(approvers) : absent);
    const r = this.expect(object().set("decision", ask), timeoutMs);
    return r.failed ? r.as<Decision>() : Outcome.of(r.value.decision!);
  }

  private expect(request: Value, timeoutMs: i64): Outcome<Waited> {
    const r = this.wait(request.set("timeoutMs", count(timeoutMs)));
    return !r.failed && r.value.timedOut ? Outcome.fail<Waited>(new Fault(Code.Timeout, "wait: time limit reached")) : r;
  }

  /** Ends what a replay of this attempt repeats: the next one starts with state, and must go on from there (A6.12). */
  checkpoint(state: Value): Outcome<Value> { return call(hostCheckpoint, "checkpoint", object().set("state", orNull(state))); }

  /** Makes a request (A6.13, asks "http"). A status of 400 or more is a response. */
  http(request: Request): Outcome<Response> {
    const r = call(hostHTTP, "http", request.toValue());
    return r.failed ? r.as<Response>() : Outcome.of(new Response(r.value));
  }

  /** Works on files as clause A6.16 has it (asks "folder"); the methods below do the same with types. */
  file(request: FileRequest): Outcome<Value> { return call(hostFile, "file", request.toValue()); }

  readFile(folder: string, path: string, offset: i64 = 0, length: i64 = 0): Outcome<FileRead> {
    const q = new FileRequest(folder, "read", path);
    q.offset = offset;
    q.length = length;
    const r = this.file(q);
    return r.failed ? r.as<FileRead>() : Outcome.of(new FileRead(r.value));
  }

  /** Replaces a file as a whole and returns its size; encoding is "base64" or empty. */
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

  /** Writes to the step's log (A6.14). Logging never fails a step: a line beyond the limit is dropped. */
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

  /** How many steps a field with the mark steps has. */
  steps(field: string): i64 { return this.field(field).get("count").asInt(); }

  /** How many branches a field with the mark branches has. */
  branches(field: string): i32 { return this.field(field).get("counts").length; }
}

// call makes one host call. Each method names its own import, so that a module
// imports those alone that its code reaches.
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
