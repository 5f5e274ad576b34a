// The conformance guest of this SDK, which the ABI kit tests; sdk/abitest/GUEST.md
// specifies its steps.
import {
  Block, BlockOptions, Context, Fault, Outcome, Problem, Step, Value, badField, bool_, int, list, nul, object, ok, plugin, text,
} from "./sdk";
import { callHost } from "./calls";

plugin("conformance", "1.0.0")
  .permission("command", ["*"], "The kit calls a command of its own.")
  .permission("llm", [], "The kit plays a model.")
  .permission("watch", [], "The kit plays an execution.")
  .permission("spawn", ["*"], "The kit plays a child.")
  .permission("emit", [], "The kit listens to an event.")
  .permission("http", ["*.example.com"], "The kit plays a server.")
  .permission("folder", ["data:rw"], "The kit plays a folder.")
  .permission("secret", ["TOKEN"], "The kit plays a secret.")
  .permission("provide", ["command"], "The kit looks for the role.")
  .step(new Step("kit_echo", "Says what it was given.",
    '{"type":"object","properties":{"echo":{}},"additionalProperties":false}', echo)
    .infer(["echo"]).alias("say", "echo").reads().validate(check)
    .output('{"type":"object"}').provides("command", "conformance/echo"))
  .step(new Step("kit_fail", "Ends with the error it was given.",
    '{"type":"object","properties":{"error":{"type":"object"},"panic":{"type":"string"}},"additionalProperties":false}', failing))
  .step(new Step("kit_call", "Makes one call of the host.",
    '{"type":"object","properties":{"call":{"type":"string"},"args":{"type":"object"},"catch":{"type":"boolean"}},"required":["call"],"additionalProperties":false}',
    calling))
  .step(new Step("kit_blocks", "Runs its steps so many times at once.",
    '{"type":"object","properties":{"steps":{"type":"array","x-sentinel":"steps"},"count":{"type":"integer"},"concurrency":{"type":"integer"},"failFast":{"type":"boolean"},"drain":{"type":"boolean"},"isolated":{"type":"boolean"},"total":{"type":"integer"}},"required":["steps"],"additionalProperties":false}',
    blocks))
  .step(new Step("kit_pages", "Adds up pages, with a checkpoint behind each.",
    '{"type":"object","properties":{"pages":{"type":"integer"}},"required":["pages"],"additionalProperties":false}', pages));

function orNull(s: string): Value { return s.length ? text(s) : nul(); }

function echo(c: Context): Outcome<Value> {
  const out = object().set("echo", c.field("echo"))
    .set("type", text(c.step.type)).set("id", orNull(c.step.id)).set("name", orNull(c.step.name))
    .set("address", text(c.step.address)).set("path", text(c.step.path))
    .set("abi", int(1)) // the SDK accepts no other
    .set("attempt", int(c.attempt)).set("iteration", int(c.run.iteration)).set("run", text(c.run.id)).set("sentinel", text(c.run.sentinel))
    .set("workspace", text(c.run.workspace)).set("key", text(c.run.key)).set("state", c.state);
  const r = c.retry;
  if (r !== null) out.set("retry", object().set("attempts", int(r.attempts)).set("code", text(r.error.code)).set("category", text(r.category)));
  return ok(out);
}

function check(fields: Value): Problem[] {
  return fields.get("echo").asText() == "bad" ? [new Problem("echo", "is bad", "use good")] : [];
}

function failing(c: Context): Outcome<Value> {
  const panic = c.field("panic");
  if (panic.given) throw new Error(panic.asText());
  if (!c.field("error").given) return Outcome.fail<Value>(badField("error", "want an error or a panic"));
  return Outcome.fail<Value>(Fault.from(c.field("error")));
}

function calling(c: Context): Outcome<Value> {
  const r = callHost(c, c.field("call").asText(), c.field("args"));
  if (!r.failed) return ok(object().set("ok", r.value));
  return c.field("catch").asBool() ? ok(object().set("error", r.fault.toValue())) : r;
}

function blocks(c: Context): Outcome<Value> {
  const list_: Block[] = [];
  const count = c.field("count").asInt(1);
  for (let i: i64 = 0; i < count; i++) list_.push(new Block("steps", object().set("i", int(i))));
  const options = new BlockOptions();
  options.failFast = c.field("failFast").asBool();
  options.concurrency = c.field("concurrency").asInt();
  options.drain = c.field("drain").asBool();
  options.isolated = c.field("isolated").asBool();
  options.total = c.field("total").asInt();
  const r = c.blocks(list_, options);
  if (r.failed) return r.as<Value>();
  const results = list();
  for (let i = 0; i < r.value.length; i++) {
    const one = r.value[i], fault = one.fault;
    const out = object().set("success", bool_(one.success)).set("output", one.output);
    if (fault !== null) out.set("error", object().set("code", text(fault.code)).set("message", text(fault.message)));
    if (one.skipped) out.set("skipped", bool_(true));
    results.push(out);
  }
  return ok(object().set("blocks", results).set("steps", int(c.steps("steps"))));
}

function pages(c: Context): Outcome<Value> {
  const from = c.state.get("next").asInt();
  let sum = c.state.get("sum").asInt();
  for (let page = from; page < c.field("pages").asInt(); page++) {
    c.info("page " + page.toString());
    const r = c.command("kit/page", object().set("page", int(page)));
    if (r.failed) return r;
    sum += r.value.get("value").asInt();
    const saved = c.checkpoint(object().set("next", int(page + 1)).set("sum", int(sum)));
    if (saved.failed) return saved;
  }
  return ok(object().set("sum", int(sum)).set("from", int(from)));
}
