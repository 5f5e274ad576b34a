// The conformance guest of this SDK, which the ABI kit tests; sdk/abitest/GUEST.md
// specifies its steps.

const any = {};

/** @param {object} properties @param {object} [more] @returns {{ type: "object", [keyword: string]: unknown }} */
function schema(properties, more = {}) {
  return { type: "object", properties, additionalProperties: false, ...more };
}

sentinel.plugin({
  name: "conformance",
  version: "1.0.0",
  permissions: [
    { use: "command", names: ["*"], reason: "The kit calls a command of its own." },
    { use: "llm", reason: "The kit plays a model." },
    { use: "watch", reason: "The kit plays an execution." },
    { use: "spawn", names: ["*"], reason: "The kit plays a child." },
    { use: "emit", reason: "The kit listens to an event." },
    { use: "http", names: ["*.example.com"], reason: "The kit plays a server." },
    { use: "folder", names: ["data:rw"], reason: "The kit plays a folder." },
    { use: "secret", names: ["TOKEN"], reason: "The kit plays a secret." },
    { use: "provide", names: ["command"], reason: "The kit looks for the role." },
  ],
  steps: {
    kit_echo: {
      summary: "Says what it was given.",
      fields: schema({ echo: any }),
      infer: ["echo"],
      aliases: { say: "echo" },
      readOnly: true,
      output: { type: "object" },
      provides: { as: "command", name: "conformance/echo" },
      run: echo,
      validate: (fields) => fields.echo === "bad" ? [{ field: "echo", message: "is bad", hint: "use good" }] : [],
    },
    kit_fail: {
      summary: "Ends with the error it was given.",
      fields: schema({ error: { type: "object" }, panic: { type: "string" } }),
      run: fail,
    },
    kit_call: {
      summary: "Makes one call of the host.",
      fields: schema({ call: { type: "string" }, args: { type: "object" }, catch: { type: "boolean" } }, { required: ["call"] }),
      run: callHost,
    },
    kit_blocks: {
      summary: "Runs its steps so many times at once.",
      fields: schema({
        steps: { type: "array", "x-sentinel": "steps" },
        count: { type: "integer" },
        concurrency: { type: "integer" },
        failFast: { type: "boolean" },
        drain: { type: "boolean" },
        isolated: { type: "boolean" },
        total: { type: "integer" },
      }, { required: ["steps"] }),
      run: blocks,
    },
    kit_pages: {
      summary: "Adds up pages, with a checkpoint behind each.",
      fields: schema({ pages: { type: "integer" } }, { required: ["pages"] }),
      run: pages,
    },
  },
});

/** @param {Step} step @param {Context} ctx */
function echo(step, ctx) {
  const { type, id = null, name = null, address, path, fields } = step;
  const { iteration, id: run, sentinel: of, workspace, key } = ctx.run;
  return {
    echo: fields.echo,
    type, id, name, address, path,
    abi: 1, // the SDK accepts no other
    attempt: ctx.attempt,
    iteration, run, sentinel: of, workspace, key,
    retry: ctx.retry && { attempts: ctx.retry.attempts, code: ctx.retry.error.code, category: ctx.retry.category },
    state: ctx.state,
  };
}

/** @param {Step} step */
function fail(step) {
  const { error, panic } = step.fields;
  if (panic !== undefined) throw new TypeError(panic);
  if (error === undefined) throw SentinelError.badField("error", "want an error or a panic");
  throw new SentinelError(error.code, error.message, error);
}

/** @param {Step} step @param {Context} ctx */
function callHost(step, ctx) {
  const { call, args = {}, catch: caught } = step.fields;
  try {
    return { ok: one(ctx, call, args) };
  } catch (e) {
    if (!caught || !(e instanceof SentinelError)) throw e;
    const { code, message, field, retryAfterMs, permanent, hint } = e;
    return { error: { code, message, field, retryAfterMs, permanent, hint } };
  }
}

/** @param {Context} ctx @param {string} call @param {any} args @returns {any} */
function one(ctx, call, args) {
  switch (call) {
    case "command":
      return args.by === "model" ? ctx.toolCommand(args.command, args.params, args.tools) : ctx.command(args.command, args.params);
    case "llm": return ctx.llm(args);
    case "watch": return ctx.watch(args.executionId, args);
    case "eval": return ctx.eval(args.expression, args.vars);
    case "var_get": return ctx.getVar(args.name);
    case "var_set": return ctx.setVars(args.values) ?? {};
    case "spawn": return args.field === undefined ? ctx.spawnNamed(args.sentinel, args.inputs) : ctx.spawn(args.field, args.inputs);
    case "emit": return ctx.emit(args.event, args.data);
    case "wait": return ctx.wait(args);
    case "checkpoint": return ctx.checkpoint(args.state) ?? {};
    case "http": return ctx.http(args);
    case "file": return file(ctx, args);
    case "log": return ctx.log(args.level, args.message) ?? {};
    case "now": return ctx.now();
    default: throw SentinelError.badField("call", `unknown host call ${call}`);
  }
}

/** @param {Context} ctx @param {FileRequest} args @returns {any} */
function file(ctx, { folder, op, path, text, encoding, offset, length }) {
  switch (op) {
    case "read": return ctx.readFile(folder, /** @type {string} */ (path), { offset, length });
    case "write": return ctx.writeFile(folder, /** @type {string} */ (path), text ?? "", encoding);
    case "list": return ctx.listFiles(folder, path, offset);
    case "stat": return ctx.stat(folder, path);
    case "remove": return ctx.removeFile(folder, /** @type {string} */ (path)) ?? {};
    default: return ctx.file({ folder, op, path });
  }
}

/** @param {Step} step @param {Context} ctx */
function blocks(step, ctx) {
  const { count = 1, concurrency, failFast, drain, isolated, total } = step.fields;
  const list = Array.from({ length: count }, (_, i) => ({ field: "steps", vars: { i } }));
  const results = ctx.blocks(list, { concurrency, failFast, drain, isolated, total });
  return {
    blocks: results.map((r) => r.success ? r : { ...r, error: { code: r.error.code, message: r.error.message } }),
    steps: ctx.steps("steps"),
  };
}

/** @param {Step} step @param {Context} ctx */
function pages(step, ctx) {
  const { next: from = 0, sum: before = 0 } = ctx.state ?? {};
  let sum = before;
  for (let page = from; page < step.fields.pages; page++) {
    ctx.info(`page ${page}`);
    sum += ctx.command("kit/page", { page }).value;
    ctx.checkpoint({ next: page + 1, sum });
  }
  return { sum, from };
}
