// The exports of a plugin, clause A1 of ABI.md. The build compiles this file
// beside plugin.ts, which registers what it provides.
import "./abort";
import { Context } from "./context";
import { Code, Fault } from "./fault";
import { error, input, output } from "./kernel";
import { parse } from "./parse";
import { current } from "./plugin";
import { list, object, optional, orNull, text } from "./value";
import { quote } from "./print";

export function describe(): i32 {
  output(current().manifest());
  return 0;
}

export function run(): i32 {
  const in_ = parse(input());
  if (in_.failed) return refuse(new Fault(Code.Internal, "run input: " + in_.fault.message));
  if (in_.value.get("abi").asInt() != 1) return refuse(new Fault(Code.Internal, "run input: abi " + in_.value.get("abi").toString() + ", want 1"));
  const context = new Context(in_.value);
  const step = current().find(context.step.type);
  if (step === null) {
    const f = new Fault(Code.BadFields, "type: this plugin has no step type " + quote(context.step.type));
    f.field = "type";
    return refuse(f.asPermanent());
  }
  const result = step.run(context);
  if (result.failed) return refuse(result.fault);
  output(object().set("output", orNull(result.value)).toString());
  return 0;
}

export function validate(): i32 {
  const in_ = parse(input());
  if (in_.failed) return refuse(new Fault(Code.Internal, "validate input: " + in_.fault.message));
  const problems = list();
  const step = current().find(in_.value.get("type").asText());
  if (step !== null) {
    const check = step.check;
    if (check !== null) {
      const found = check(in_.value.get("fields"));
      for (let i = 0; i < found.length; i++) {
        const p = found[i];
        problems.push(object().set("field", text(p.field)).set("message", text(p.message)).set("hint", optional(p.hint)));
      }
    }
  }
  output(object().set("problems", problems).toString());
  return 0;
}

function refuse(f: Fault): i32 {
  error(f.toValue().toString());
  return 1;
}
