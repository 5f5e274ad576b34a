// The globals of a plugin's script: sentinel, SentinelError, console, and a Math.random
// that is seeded per attempt. glue.c evaluates this file in the engine, testing.mjs
// under node. Its value is a function of the host:
// {call(n, text) -> text, random(), trace(text), linked, file}.
(function (host) {
  "use strict";

  // The order is that of the imports in glue.c.
  const calls = ["command", "llm", "watch", "eval", "var", "block", "spawn", "emit", "wait", "checkpoint", "http", "log", "now", "file"];
  // The functions that need a grant, with their use. A plugin has the import of one
  // only if its script contains the text use: "USE".
  const uses = { command: "command", llm: "llm", watch: "watch", spawn: "spawn", emit: "emit", http: "http", file: "folder" };
  const codes = ["bad_fields", "denied", "not_found", "conflict", "timeout", "cancelled", "unavailable", "limit", "trap",
    "memory", "output", "plugin", "interrupted", "internal"];
  const name = /^[a-z][a-z0-9_]{0,63}$/;
  // The number of calls of the script that are shown of a stack trace.
  const frames = 16;

  // Kept before the script runs: a plugin that replaces JSON must not change what the
  // host reads.
  const { parse, stringify } = JSON;
  const { isArray } = Array;

  // SentinelError is an error of the ABI, clause A5: every failed host call throws
  // one, and a step that throws one ends with it.
  class SentinelError extends Error {
    constructor(code, message, more = {}) {
      super(message);
      this.code = code;
      for (const key of ["field", "retryAfterMs", "permanent", "hint"])
        if (more[key] !== undefined && more[key] !== null) this[key] = more[key];
    }
    get name() { return "SentinelError"; }
    static badField(field, message, hint) {
      return new SentinelError("bad_fields", field + ": " + message, { field, permanent: true, hint });
    }
    static from(e) {
      const known = codes.includes(e.code) ? e.code : "plugin";
      return new SentinelError(known, typeof e.message === "string" ? e.message : "unknown error", e);
    }
    toJSON() {
      const { code, message, field, retryAfterMs, permanent, hint } = this;
      return { code, message, field, retryAfterMs, permanent, hint };
    }
  }

  // own returns the lines of a stack that are in the script, innermost first.
  function own(stack) {
    const lines = String(stack || "").split("\n").map((line) => line.trim());
    return lines.filter((line) => line.includes(host.file + ":")).slice(0, frames);
  }

  // fault converts a thrown value to an error object. A bug of the script (TypeError and
  // similar) is permanent, because a retry does not help. An Error that the script
  // throws itself may be retried.
  function fault(op, thrown) {
    if (thrown instanceof SentinelError) {
      const e = thrown.toJSON();
      e.code = codes.includes(e.code) ? e.code : "plugin";
      e.message = String(e.message) || "unknown error";
      return e;
    }
    if (!(thrown instanceof Error)) return { code: "plugin", message: op + ": " + text(thrown) };
    const kind = thrown.name || "Error";
    const message = String(thrown.message);
    if (message === "out of memory") return { code: "memory", message: op + ": out of memory", permanent: true };
    // A message is one line with the position. The stack trace is for the plugin's
    // author, on standard error.
    const stack = own(thrown.stack);
    if (stack.length > 1) host.trace(op + ": " + kind + ": " + message + "\n    " + stack.join("\n    ") + "\n");
    const line1 = [op + ": " + (kind === "Error" ? "" : kind + ": ") + message, ...stack.slice(0, 1)].join(" ");
    const bug = thrown instanceof TypeError || thrown instanceof ReferenceError || thrown instanceof RangeError ||
      thrown instanceof SyntaxError || kind === "InternalError";
    return bug ? { code: "trap", message: line1, permanent: true } : { code: "plugin", message: line1 };
  }

  // text shows a value that was thrown or logged.
  function text(value) {
    if (typeof value === "string") return value;
    if (value instanceof Error) return [value.name + ": " + value.message, ...own(value.stack)].join("\n    ");
    try {
      const json = typeof value === "object" ? stringify(value) : undefined;
      return json === undefined ? String(value) : json;
    } catch {
      return Object.prototype.toString.call(value); // circular, or its toString throws
    }
  }

  // running is false while the script is loaded, described or validates: then host calls
  // are denied.
  let running = false;

  function call(function_, request) {
    const n = calls.indexOf(function_);
    if (!running) throw new SentinelError("denied", "sentinel_" + function_ + ": only run may call the host");
    if (!(host.linked >>> n & 1))
      throw new SentinelError("denied", "sentinel_" + function_ + ": the plugin does not request it",
        { hint: 'add {use: "' + uses[function_] + '", reason: "..."} to the plugin\'s permissions, literally' });
    const answer = parse(host.call(n, stringify(request)));
    if (answer.error) throw SentinelError.from(answer.error);
    if (!("ok" in answer)) throw new SentinelError("internal", "sentinel_" + function_ + ": answer: neither ok nor error");
    return answer.ok;
  }

  const orNull = (value) => value === undefined ? null : value;
  // timed puts a time limit into a request; 0 and undefined are none.
  const timed = (request, timeoutMs) => timeoutMs ? { ...request, timeoutMs } : request;

  // expect turns the end of a wait's time limit into an error.
  function expect(answer) {
    if (answer.timedOut) throw new SentinelError("timeout", "wait: time limit reached");
    return answer;
  }

  // Context is one attempt of one step, with the host calls as methods, which block until
  // the answer arrives. sentinel.d.ts describes them.
  class Context {
    constructor(input) {
      this.run = input.run;
      this.attempt = input.attempt;
      this.retry = input.retry ? { ...input.retry, error: SentinelError.from(input.retry.error) } : undefined;
      this.state = input.state;
      this.step = input.step;
    }
    command(command, params) { return call("command", { command, params }); }
    toolCommand(command, params, tools) { return call("command", { command, params, by: "model", tools }); }
    llm(turn) { return call("llm", { append: [], ...turn }); }
    watch(executionId, { rules, until } = {}) { return call("watch", { executionId, rules, until }); }
    eval(expression, vars) { return call("eval", { expression, vars }); }
    getVar(path) { return call("var", { get: path }); }
    setVar(variable, value) { call("var", { set: { [variable]: orNull(value) } }); }
    setVars(values) { call("var", { set: values }); }
    block(field, vars) {
      const [result] = this.blocks([{ field, vars }]);
      if (!result.success) throw result.error;
      return result.output;
    }
    blocks(blocks, { failFast, concurrency, drain, isolated, total } = {}) {
      const results = call("block", { blocks, failFast, concurrency, drain, isolated, total }).blocks;
      if (!isArray(results) || results.length !== blocks.length)
        throw new SentinelError("internal", "sentinel_block: not one result for each block");
      return results.map((r) => r.success ? { success: true, output: orNull(r.output) } : {
        success: false,
        output: orNull(r.output),
        ...(r.skipped ? { skipped: true } : {}),
        error: r.error ? SentinelError.from(r.error) : new SentinelError("internal", "sentinel_block: a block ended without a reason"),
      });
    }
    spawn(field, inputs) { return call("spawn", { field, inputs }); }
    spawnNamed(sentinel, inputs) { return call("spawn", { sentinel, inputs }); }
    emit(event, data) { return call("emit", { event, data }); }
    wait(request) { return call("wait", request); }
    sleep(durationMs) { expect(this.wait({ durationMs })); }
    waitUntil(moment) { expect(this.wait({ until: moment instanceof Date ? moment.toISOString() : moment })); }
    waitEvent(pattern, timeoutMs) { return expect(this.wait(timed({ event: pattern }, timeoutMs))).event; }
    waitRun(run, timeoutMs) { return expect(this.wait(timed({ run }, timeoutMs))).result; }
    decide(prompt, { approvers, timeoutMs, callKind } = {}) {
      const decision = expect(this.wait(timed({ decision: { prompt, approvers, callKind } }, timeoutMs))).decision;
      return { ...decision, approved: decision.verdict === "approve" };
    }
    checkpoint(state) { call("checkpoint", { state: orNull(state) }); }
    http(request) { return call("http", typeof request === "string" ? { url: request } : request); }
    file(request) { return call("file", request); }
    readFile(folder, path, { offset, length } = {}) { return this.file({ folder, op: "read", path, offset, length }); }
    writeFile(folder, path, content, encoding) { return this.file({ folder, op: "write", path, text: content, encoding }); }
    listFiles(folder, path, offset) { return this.file({ folder, op: "list", path, offset }); }
    stat(folder, path) { return this.file({ folder, op: "stat", path }); }
    removeFile(folder, path) { this.file({ folder, op: "remove", path }); }
    log(level, message) { log(level, message); }
    debug(...values) { log("debug", line(values)); }
    info(...values) { log("info", line(values)); }
    warn(...values) { log("warn", line(values)); }
    error(...values) { log("error", line(values)); }
    now() { return call("now", {}); }
    steps(field) { return this.step.fields[field]?.count ?? 0; }
    branches(field) { return this.step.fields[field]?.counts ?? []; }
  }

  const line = (values) => values.map(text).join(" ");
  // early are the lines that were logged while host calls were denied.
  const early = [];

  // log never fails a step: the host drops and counts lines beyond the limit.
  function log(level, message) {
    if (!running) {
      early.push([level, message]);
      return;
    }
    try {
      call("log", { level, message });
    } catch (e) {
      if (!(e instanceof SentinelError)) throw e;
    }
  }

  globalThis.console = Object.freeze({
    log: (...values) => log("info", line(values)),
    info: (...values) => log("info", line(values)),
    debug: (...values) => log("debug", line(values)),
    warn: (...values) => log("warn", line(values)),
    error: (...values) => log("error", line(values)),
  });
  Math.random = () => host.random();
  globalThis.SentinelError = SentinelError;

  let registered; // the argument of sentinel.plugin
  let manifest; // its text

  const wrong = (what) => new SentinelError("plugin", host.file + ": " + what, { permanent: true });

  function checkStep(type, s) {
    if (!name.test(type)) throw wrong(`step type ${stringify(type)}: want lower_snake, ${name.source}`);
    if (typeof s?.run !== "function") throw wrong(`step type ${type}: run is not a function`);
    if (typeof s.summary !== "string" || !s.summary) throw wrong(`step type ${type}: summary is missing`);
    if (s.validate !== undefined && typeof s.validate !== "function") throw wrong(`step type ${type}: validate is not a function`);
    if (s.fields?.type !== "object") throw wrong(`step type ${type}: fields is not a JSON Schema of type object`);
    return { type, summary: s.summary, fields: s.fields, output: s.output, infer: s.infer, aliases: s.aliases, readOnly: s.readOnly, provides: s.provides };
  }

  function checkPermission(permission) {
    if (!permission || typeof permission.use !== "string" || typeof permission.reason !== "string" || !permission.reason)
      throw wrong('each of permissions must be {use, names?, reason}, with a reason');
    const f = Object.keys(uses).find((key) => uses[key] === permission.use);
    if (f !== undefined && !(host.linked >>> calls.indexOf(f) & 1))
      throw wrong(`use ${permission.use}: the build did not find the text use: "${permission.use}" in the script`);
    return { use: permission.use, names: permission.names, reason: permission.reason };
  }

  globalThis.sentinel = Object.freeze({
    Error: SentinelError,
    plugin(p) {
      if (registered) throw wrong("sentinel.plugin is called twice");
      if (!p || !name.test(p.name)) throw wrong(`name ${stringify(p?.name)}: want lower_snake, ${name.source}`);
      if (typeof p.version !== "string") throw wrong("version is not a string");
      const steps = Object.entries(p.steps || {}).map(([type, s]) => checkStep(type, s));
      if (!steps.length) throw wrong("steps has no step type");
      const permissions = (p.permissions || []).map(checkPermission);
      manifest = stringify({ name: p.name, version: p.version, abi: 1, steps, permissions: permissions.length ? permissions : undefined,
        stateless: p.stateless === true ? true : undefined });
      registered = p;
    },
  });

  let settled; // the result of an async run

  return {
    describe() {
      if (!registered) return [1, stringify(wrong("it does not call sentinel.plugin"))];
      return [0, manifest];
    },

    // run returns [status, text], or undefined if the step returned a promise;
    // settle then returns the result.
    run(inputText) {
      let op = "run";
      const end = (output) => {
        running = false;
        const json = stringify({ output: orNull(output) });
        return [0, json];
      };
      const fail = (thrown) => {
        running = false;
        return [1, stringify(fault(op, thrown))];
      };
      try {
        const input = parse(inputText);
        if (input.abi !== 1) throw new SentinelError("internal", "run input: abi " + input.abi + ", want 1");
        const { step } = input;
        if (!registered || !Object.hasOwn(registered.steps, step.type))
          throw SentinelError.badField("type", "this plugin has no step type " + stringify(step.type));
        op = "step " + step.type;
        running = true;
        for (const [level, message] of early.splice(0)) log(level, message);
        const output = registered.steps[step.type].run(step, new Context(input));
        if (typeof output?.then !== "function") return end(output);
        settled = undefined;
        output.then((value) => { settled = end(value); }, (thrown) => { settled = fail(thrown); })
          .then(undefined, (thrown) => { settled = fail(thrown); }); // an output that is not JSON
        return undefined;
      } catch (thrown) {
        return fail(thrown);
      }
    },

    settle() {
      running = false;
      return settled || [1, stringify({ code: "plugin", permanent: true,
        message: "run: the step awaits a promise that never settles: there is no event loop, host calls block" })];
    },

    validate(inputText) {
      try {
        const input = parse(inputText);
        const step = registered && Object.hasOwn(registered.steps, input.type) ? registered.steps[input.type] : {};
        let problems = [];
        try {
          problems = step.validate?.(input.fields) ?? [];
        } catch (thrown) {
          // The same check may be called in run, where its error ends the step.
          if (!(thrown instanceof SentinelError) || thrown.code !== "bad_fields") throw thrown;
          const field = thrown.field || "";
          problems = [{ field, message: thrown.message.replace(field + ": ", ""), hint: thrown.hint }];
        }
        return [0, stringify({ problems: problems.map(({ field, message, hint }) => ({ field: field ?? "", message, hint })) })];
      } catch (thrown) {
        return [1, stringify(fault("validate", thrown))];
      }
    },
  };
})
