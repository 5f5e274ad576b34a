// One host call through its typed wrapper, with the answer rebuilt from the result of the
// wrapper.
import {
  Context, FileRequest, Message, Outcome, Replacement, Reply, Request, Turn, Value, Waited, Watched, absent, badField, bool_, float, int, list,
  object, ok, optional, text, texts,
} from "./sdk";

export function callHost(c: Context, name: string, args: Value): Outcome<Value> {
  if (name == "command") {
    return args.get("by").asText() == "model"
      ? c.toolCommand(args.get("command").asText(), args.get("params"), args.get("tools").asTexts())
      : c.command(args.get("command").asText(), args.get("params"));
  }
  if (name == "llm") {
    const r = c.llm(turn(args));
    return r.failed ? r.as<Value>() : ok(reply(r.value));
  }
  if (name == "watch") {
    const r = c.watch(args.get("executionId").asText(), args.get("until").asText(), args.get("rules"));
    return r.failed ? r.as<Value>() : ok(watched(r.value));
  }
  if (name == "eval") {
    const r = c.eval(args.get("expression").asText(), args.get("vars"));
    return r.failed ? r.as<Value>() : ok(object().set("value", r.value.value).set("truthy", bool_(r.value.truthy)));
  }
  if (name == "var_get") {
    const r = c.getVar(args.get("name").asText());
    return r.failed ? r.as<Value>() : ok(object().set("value", r.value.value).set("found", bool_(r.value.found)));
  }
  if (name == "var_set") return c.setVars(args.get("values"));
  if (name == "spawn") {
    const r = args.get("field").given ? c.spawn(args.get("field").asText(), args.get("inputs"))
      : c.spawnNamed(args.get("sentinel").asText(), args.get("inputs"));
    return r.failed ? r.as<Value>() : ok(object().set("run", text(r.value.run)).set("sentinel", text(r.value.sentinel)));
  }
  if (name == "emit") {
    const r = c.emit(args.get("event").asText(), args.get("data"));
    return r.failed ? r.as<Value>() : ok(object().set("id", text(r.value)));
  }
  if (name == "wait") {
    const r = c.wait(args);
    return r.failed ? r.as<Value>() : ok(waited(r.value));
  }
  if (name == "checkpoint") return c.checkpoint(args.get("state"));
  if (name == "http") {
    const r = c.http(request(args));
    if (r.failed) return r.as<Value>();
    const answer = r.value;
    return ok(object().set("status", int(answer.status)).set("headers", answer.headers).set("body", text(answer.body))
      .set("encoding", optional(answer.encoding)).set("truncated", bool_(answer.truncated)));
  }
  if (name == "file") return file(c, args);
  if (name == "log") {
    c.log(args.get("level").asText(), args.get("message").asText());
    return ok(object());
  }
  if (name == "now") {
    const r = c.now();
    return r.failed ? r.as<Value>() : ok(object().set("unixMs", int(r.value.unixMs)).set("iso", text(r.value.iso)));
  }
  return Outcome.fail<Value>(badField("call", "unknown host call " + name));
}

function turn(args: Value): Turn {
  const t = new Turn();
  t.conversation = args.get("conversation").asText();
  t.system = args.get("system").asText();
  t.context = args.get("context").asBool();
  t.model = args.get("model").asText();
  t.temperature = args.get("temperature");
  t.maxTokens = args.get("maxTokens").asInt();
  t.tools = args.get("tools").asTexts();
  t.schema = args.get("schema");
  t.append = messages(args.get("append"));
  const replace = args.get("replace");
  for (let i = 0; i < replace.length; i++) {
    const v = replace.at(i);
    t.replace.push(new Replacement(v.get("from").asInt(), v.get("to").asInt(), messages(v.get("with"))));
  }
  t.aside = args.get("aside").asBool();
  return t;
}

function messages(list: Value): Message[] {
  const all: Message[] = [];
  for (let i = 0; i < list.length; i++) {
    const v = list.at(i);
    const m = new Message(v.get("role").asText(), v.get("content").asText());
    m.toolCallId = v.get("toolCallId").asText();
    m.name = v.get("name").asText();
    m.isError = v.get("isError").asBool();
    all.push(m);
  }
  return all;
}

function reply(r: Reply): Value {
  const calls = list();
  for (let i = 0; i < r.toolCalls.length; i++) {
    const t = r.toolCalls[i];
    calls.push(object().set("id", text(t.id)).set("name", text(t.name)).set("arguments", t.arguments));
  }
  const usage = object().set("inputTokens", int(r.usage.inputTokens)).set("outputTokens", int(r.usage.outputTokens))
    .set("costUsd", float(r.usage.costUsd)).set("calls", int(r.usage.calls));
  return object().set("conversation", text(r.conversation)).set("text", text(r.text)).set("json", r.json).set("inputLimit", int(r.inputLimit))
    .set("problems", r.problems.length ? texts(r.problems) : absent).set("toolCalls", calls).set("finish", text(r.finish))
    .set("usage", usage).set("provider", text(r.provider)).set("model", text(r.model));
}

function watched(w: Watched): Value {
  const lines = list();
  for (let i = 0; i < w.lines.length; i++) {
    const l = w.lines[i];
    lines.push(object().set("text", text(l.text)).set("classification", text(l.classification)).set("lineNumber", int(l.lineNumber))
      .set("stream", text(l.stream)).set("timestamp", text(l.timestamp)));
  }
  return object().set("executionId", text(w.executionId)).set("lines", lines).set("text", text(w.text)).set("finished", bool_(w.finished))
    .set("exitCode", w.exitCode).set("dropped", int(w.dropped)).set("cursor", int(w.cursor));
}

function waited(w: Waited): Value {
  const out = object().set("timedOut", bool_(w.timedOut)).set("event", w.event).set("result", w.result);
  const d = w.decision;
  if (d === null) return out;
  return out.set("decision", object().set("verdict", text(d.approved ? "approve" : "reject")).set("by", text(d.by)).set("at", text(d.at))
    .set("comment", optional(d.comment)));
}

function request(args: Value): Request {
  const r = new Request(args.get("url").asText());
  r.method = args.get("method").asText();
  r.headers = args.get("headers");
  r.body = args.get("body").asText();
  r.bodySecrets = args.get("bodySecrets").asBool();
  r.timeoutMs = args.get("timeoutMs").asInt();
  return r;
}

function file(c: Context, args: Value): Outcome<Value> {
  const folder = args.get("folder").asText(), op = args.get("op").asText(), path = args.get("path").asText();
  if (op == "read") {
    const r = c.readFile(folder, path, args.get("offset").asInt(), args.get("length").asInt());
    if (r.failed) return r.as<Value>();
    return ok(object().set("text", text(r.value.text)).set("encoding", optional(r.value.encoding)).set("size", int(r.value.size))
      .set("truncated", bool_(r.value.truncated)));
  }
  if (op == "write") return c.writeFile(folder, path, args.get("text").asText(), args.get("encoding").asText());
  if (op == "list") {
    const r = c.listFiles(folder, path, args.get("offset").asInt());
    if (r.failed) return r.as<Value>();
    const entries = list();
    for (let i = 0; i < r.value.entries.length; i++) {
      const e = r.value.entries[i];
      entries.push(object().set("name", text(e.name)).set("dir", bool_(e.dir)).set("size", int(e.size)).set("modified", text(e.modified)));
    }
    return ok(object().set("entries", entries).set("truncated", bool_(r.value.truncated)));
  }
  if (op == "stat") {
    const r = c.stat(folder, path);
    if (r.failed) return r.as<Value>();
    return ok(object().set("exists", bool_(r.value.exists)).set("dir", bool_(r.value.dir)).set("size", int(r.value.size))
      .set("modified", optional(r.value.modified)));
  }
  if (op == "remove") return c.removeFile(folder, path);
  return c.file(new FileRequest(folder, op, path));
}
