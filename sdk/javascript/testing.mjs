// Runs steps of a plugin under node, with scripted answers of the host:
//
//   import { load } from "./sdk/testing.mjs";
//   const plugin = await load("plugin.js");
//   const { output, error, calls, logs } = await plugin.run("shout", { text: "hey" });
//
// The script has the same globals as in the engine, from the same prelude.js. The
// differences: fields are not validated against their schema, steps are not replayed, and
// clock and random numbers are those of node. `sentinel plugin test` runs tests/cases.json
// in the engine itself; package sdktest of the Go SDK defines the format of a case.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const names = ["command", "llm", "watch", "eval", "var", "block", "spawn", "emit", "wait", "checkpoint", "http", "log", "now", "file"];
const uses = { command: "command", llm: "llm", watch: "watch", spawn: "spawn", emit: "emit", http: "http", file: "folder" };

/** load evaluates a script, a path or a file: URL, and returns the plugin it registers. */
export async function load(file) {
  const path = file instanceof URL ? fileURLToPath(file) : file;
  const source = await readFile(path, "utf8");
  const prelude = await readFile(new URL("engine/prelude.js", import.meta.url), "utf8");
  const host = {
    file: path.replace(/^.*[/\\]/, ""),
    linked: linkedBy(source),
    random: Math.random,
    trace: (text) => process.stderr.write(text),
    call: () => { throw new Error("no step runs"); },
  };
  // The prelude changes globals. Here it gets its own ones, which are installed only
  // while the script runs.
  const scope = {};
  const math = Object.create(Math);
  const engine = new Function("globalThis", "Math", `return (\n${prelude}\n)`)(scope, math)(host);
  const within = async (work) => {
    const before = new Map(Object.keys(scope).map((key) => [key, globalThis[key]]));
    Object.assign(globalThis, scope);
    try {
      return await work();
    } finally {
      for (const [key, value] of before) value === undefined ? delete globalThis[key] : globalThis[key] = value;
    }
  };
  await within(() => import("data:text/javascript;charset=utf-8," + encodeURIComponent(source + "\n//# sourceURL=" + host.file) + "#" + loads++));
  const manifest = answer(engine.describe());
  if (manifest.error) throw new Error(manifest.error.message);
  return {
    manifest: manifest.output,
    /** run executes one step. With options.calls, it must make exactly these calls, in order; log, checkpoint and now are not listed. */
    run: (type, fields = {}, options = {}) => within(async () => {
      const script = answers(options.calls ?? []);
      host.call = (n, request) => script.answer(names[n], request);
      const input = {
        abi: 1, attempt: options.attempt ?? 1, retry: options.retry, state: options.state,
        step: { type, address: "0", path: "1#1.0", fields: guestFields(manifest.output, type, fields), ...options.step },
        run: { id: "run", sentinel: "test", iteration: 1, workspace: "/workspace", key: "key", ...options.run },
      };
      let result = engine.run(JSON.stringify(input));
      if (result === undefined) {
        await new Promise((done) => setImmediate(done)); // wait for pending promises
        result = engine.settle();
      }
      const { error, output } = answer(result);
      script.done(error);
      return { output: output?.output, error, calls: script.calls, logs: script.logs };
    }),
    /** validate returns the problems of fields. */
    validate: (type, fields) => within(async () => {
      const { output, error } = answer(engine.validate(JSON.stringify({ type, fields })));
      if (error) throw new Error(error.message);
      return output.problems;
    }),
  };
}

/** cases makes a test of each case in a file such as tests/cases.json. */
export async function cases(plugin, file) {
  for (const c of JSON.parse(await readFile(file, "utf8"))) {
    test(c.name, async () => {
      if (c.problems) {
        contains(await plugin.validate(c.step.type, c.step.fields ?? {}), c.problems, "problems");
        return;
      }
      const { type, fields, ...step } = c.step;
      const result = await plugin.run(type, fields, { calls: c.calls, attempt: c.attempt, retry: c.retry, state: c.state, run: c.run, step });
      if (c.error) {
        assert.ok(result.error, "it gave an output: " + JSON.stringify(result.output));
        const { message = "", hint = "", ...rest } = c.error;
        for (const [key, value] of Object.entries(rest)) assert.deepEqual(result.error[key], value, key);
        assert.ok(result.error.message.includes(message), result.error.message);
        assert.ok((result.error.hint ?? "").includes(hint), result.error.hint);
      } else {
        assert.equal(result.error, undefined);
        if ("output" in c) assert.deepEqual(result.output, c.output);
      }
      let at = 0;
      for (const text of c.logs ?? []) {
        const found = result.logs.findIndex((l, i) => i >= at && l.message.includes(text));
        assert.notEqual(found, -1, "no log line holds " + text);
        at = found + 1;
      }
    });
  }
}

let loads = 0; // each load evaluates the script again

const answer = ([status, text]) => status ? { error: JSON.parse(text) } : { output: JSON.parse(text) };

// linkedBy returns the uses in a script, as links in module.go.
function linkedBy(source) {
  const asked = new Set([...source.matchAll(/\buse["']?\s*:\s*["'`]([a-z]+)["'`]/g)].map((m) => m[1]));
  return names.reduce((bits, name, n) => !uses[name] || asked.has(uses[name]) ? bits | 1 << n : bits, 0);
}

// guestFields converts fields as a host does: aliases are renamed, and nested steps become
// their number.
function guestFields(manifest, type, given) {
  const step = manifest.steps.find((s) => s.type === type), fields = { ...given };
  for (const [alias, name] of Object.entries(step?.aliases ?? {})) {
    if (alias in fields) [fields[name]] = [fields[alias], delete fields[alias]];
  }
  for (const [name, value] of Object.entries(fields)) {
    const mark = step?.fields?.properties?.[name]?.["x-sentinel"];
    if (mark === "steps" && Array.isArray(value)) fields[name] = { count: value.length };
    if (mark === "branches" && Array.isArray(value) && value.every(Array.isArray)) fields[name] = { counts: value.map((b) => b.length) };
  }
  return fields;
}

// contains compares values as sdktest does: objects may have more keys than the wanted
// ones.
function contains(got, want, path) {
  if (Array.isArray(want) && Array.isArray(got)) {
    assert.equal(got.length, want.length, path + ": another number of items");
    want.forEach((w, i) => contains(got[i], w, `${path}[${i}]`));
  } else if (want !== null && got !== null && typeof want === "object" && typeof got === "object" && !Array.isArray(want) && !Array.isArray(got)) {
    for (const key of Object.keys(want)) contains(got[key], want[key], path + "." + key);
  } else {
    assert.deepEqual(got, want, `${path}: want ${JSON.stringify(want)}, got ${JSON.stringify(got)}`);
  }
}

// answers fakes the host with a list of {function, request?, ok | error}.
function answers(fakes) {
  const list = fakes.map((f) => ({ ...f, function: f.function.startsWith("sentinel_") ? f.function : "sentinel_" + f.function }));
  const calls = [], logs = [], problems = [];
  let next = 0;
  return {
    calls, logs,
    answer(name, text) {
      const request = JSON.parse(text), f = "sentinel_" + name;
      calls.push({ function: f, request });
      if (name === "log") logs.push(request);
      const fake = list[next];
      if (fake?.function === f) {
        next++;
        try {
          if (fake.request !== undefined) contains(request, fake.request, "request");
        } catch (e) {
          problems.push(e);
        }
        return JSON.stringify(fake.error ? { error: fake.error } : { ok: fake.ok ?? {} });
      }
      if (name === "log" || name === "checkpoint") return '{"ok":{}}';
      if (name === "now") return '{"ok":{"unixMs":1767225600000,"iso":"2026-01-01T00:00:00Z"}}';
      problems.push(new assert.AssertionError({ message: `call ${calls.length}: want ${fake?.function ?? "no further call"}, got ${f} ${text}` }));
      return JSON.stringify({ error: { code: "denied", message: f + ": no answer is written for this call" } });
    },
    // done throws the error of an unexpected call, which may be the cause of an error of
    // the step.
    done(error) {
      if (problems.length) throw problems[0];
      if (!error && next < list.length) throw new assert.AssertionError({ message: `${list[next].function} was not called` });
    },
  };
}
