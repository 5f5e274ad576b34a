import { Context } from "./context";
import { Outcome } from "./fault";
import { Value, list, object, text, texts } from "./value";
import { print, quote } from "./print";

/** Executes one step; its output becomes the value of outputTo. */
export type Run = (c: Context) => Outcome<Value>;
/** Returns problems of the fields beyond the schema. A text may have references. */
export type Validate = (fields: Value) => Problem[];

/** One invalid field of a step. */
export class Problem {
  constructor(public field: string, public message: string, public hint: string = "") {}
}

// A Step is one step type.
export class Step {
  private inferred: string[] = [];
  private aliases: Value = object();
  private readOnly: bool = false;
  private schema: string = "";
  private role: Value | null = null;
  check: Validate | null = null;

  /** Fields is the JSON Schema, of type object, of the step's own fields, as text. Properties may have "x-sentinel" marks. */
  constructor(public type: string, private summary: string, private fields: string, public run: Run) {}

  /** A step without a type that has one of these fields is of this type. */
  infer(fields: string[]): Step {
    this.inferred = fields;
    return this;
  }

  /** An alias of a field. */
  alias(name: string, field: string): Step {
    this.aliases.set(name, text(field));
    return this;
  }

  /** It changes nothing outside the run. */
  reads(): Step {
    this.readOnly = true;
    return this;
  }

  /** The JSON Schema of the output, as text, for users and for checks of references to it. */
  output(schema: string): Step {
    this.schema = schema;
    return this;
  }

  /**
   * What the step type is besides, clause A9: "command" with a name, PLUGIN/VERB, and an output; "error_classifier",
   * "output_classifier", "notifier" or "model" without. It needs permission("provide", [role], reason).
   */
  provides(role: string, name: string = ""): Step {
    const r = object().set("as", text(role));
    if (name.length) r.set("name", text(name));
    this.role = r;
    return this;
  }

  validate(f: Validate): Step {
    this.check = f;
    return this;
  }

  // manifest is text, so that describe, which is called on every new instance, does not
  // parse the schema.
  manifest(): string {
    let s = '{"type":' + quote(this.type) + ',"summary":' + quote(this.summary) + ',"fields":' + this.fields;
    if (this.schema.length) s += ',"output":' + this.schema;
    if (this.inferred.length) s += ',"infer":' + print(texts(this.inferred));
    if (this.aliases.length) s += ',"aliases":' + print(this.aliases);
    if (this.readOnly) s += ',"readOnly":true';
    const role = this.role;
    if (role !== null) s += ',"provides":' + print(role);
    return s + "}";
  }
}

// A Plugin describes the step types of one module.
export class Plugin {
  private steps: Step[] = [];
  private permissions: Value = list();
  private pure: bool = false;

  constructor(private name: string, private version: string) {}

  /** Requests a permission, with a reason for the operator. Names are commands, hosts and so on, see clause A2.4. */
  permission(use: string, names: string[], reason: string): Plugin {
    const permission = object().set("use", text(use));
    if (names.length) permission.set("names", texts(names));
    this.permissions.push(permission.set("reason", text(reason)));
    return this;
  }

  step(s: Step): Plugin {
    this.steps.push(s);
    return this;
  }

  /** Requests and outputs depend only on the input, so that an operator may allow instances to be reused. */
  stateless(): Plugin {
    this.pure = true;
    return this;
  }

  find(type: string): Step | null {
    for (let i = 0; i < this.steps.length; i++) if (this.steps[i].type == type) return this.steps[i];
    return null;
  }

  manifest(): string {
    const steps: string[] = [];
    for (let i = 0; i < this.steps.length; i++) steps.push(this.steps[i].manifest());
    let s = '{"name":' + quote(this.name) + ',"version":' + quote(this.version) + ',"abi":1,"steps":[' + steps.join(",") + "]";
    if (this.permissions.length) s += ',"permissions":' + print(this.permissions);
    if (this.pure) s += ',"stateless":true';
    return s + "}";
  }
}

let registered: Plugin | null = null;

/** Registers the plugin of this module. Call it once, at the top of plugin.ts. */
export function plugin(name: string, version: string): Plugin {
  assert(registered === null, "plugin is called twice");
  const p = new Plugin(name, version);
  registered = p;
  return p;
}

export function current(): Plugin {
  return assert(registered, "plugin.ts does not call plugin");
}
