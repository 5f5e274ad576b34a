// The tests of testing.mjs.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { load } from "./testing.mjs";

const dir = await mkdtemp(join(tmpdir(), "sentinel-"));
after(() => rm(dir, { recursive: true }));

async function script(run, permissions = "") {
  const file = join(dir, "plugin.js");
  await writeFile(file, `console.log("early");
sentinel.plugin({ name: "p", version: "1", ${permissions} steps: { s: { summary: "S.", fields: { type: "object" }, run: ${run} } } });`);
  return load(file);
}

test("an output, its calls and its logs", async () => {
  const p = await script('(s, ctx) => { console.warn("hi"); return ctx.getVar("x").value + s.fields.n; }');
  const r = await p.run("s", { n: 2 }, { calls: [{ function: "sentinel_var", request: { get: "x" }, ok: { value: 40, found: true } }] });
  assert.equal(r.output, 42);
  assert.deepEqual(r.logs.map((l) => l.message), ["early", "hi"]);
  assert.equal(p.manifest.name, "p");
  assert.equal(globalThis.sentinel, undefined, "globals are put back");
});

test("errors keep their class", async () => {
  const p = await script('(s, ctx) => { try { ctx.emit("a"); } catch (e) { return [e instanceof SentinelError, e.code, e.hint]; } }', 'permissions: [{ use: "emit", reason: "r" }],');
  const calls = [{ function: "sentinel_emit", error: { code: "limit", message: "m", hint: "h" } }];
  assert.deepEqual((await p.run("s", {}, { calls })).output, [true, "limit", "h"]);
});

test("an unexpected call, and a missing one", async () => {
  const p = await script('(s, ctx) => { if (s.fields.call) ctx.sleep(1); }');
  await assert.rejects(p.run("s", { call: true }), /want no further call, got sentinel_wait/);
  await assert.rejects(p.run("s", {}, { calls: [{ function: "sentinel_wait" }] }), /sentinel_wait was not called/);
  await assert.rejects(p.run("s", { call: true }, { calls: [{ function: "sentinel_wait", request: { durationMs: 2 } }] }), /durationMs/);
});

test("calls match as in sentinel plugin test", async () => {
  const p = await script('(s, ctx) => ctx.wait({ event: "e", filter: { list: [{ a: 1, b: 2 }] }, timeoutMs: 5 })');
  const run = (request) => p.run("s", {}, { calls: [{ function: "wait", request, ok: { timedOut: true } }] });
  for (const request of [undefined, {}, { event: "e" }, { filter: { list: [{ b: 2 }] } }]) await run(request);
  await assert.rejects(run({ filter: { list: [] } }), /request.filter.list: another number of items/);
  await assert.rejects(run({ filter: { list: [{ b: 3 }] } }), /request.filter.list\[0\].b: want 3, got 2/);
  await assert.rejects(run({ name: null }), /request.name: want null/);
});

test("fields in the form of a definition", async () => {
  const file = join(dir, "fields.js");
  await writeFile(file, `sentinel.plugin({ name: "p", version: "1", steps: { s: { summary: "S.", aliases: { word: "text" }, run: (s) => s.fields,
    fields: { type: "object", properties: { text: {}, steps: { "x-sentinel": "steps" }, branches: { "x-sentinel": "branches" } } } } } });`);
  const { output } = await (await load(file)).run("s", { word: "a", steps: [{}, {}], branches: [[{}], []], other: [1] });
  assert.deepEqual(output, { text: "a", steps: { count: 2 }, branches: { counts: [1, 0] }, other: [1] });
});

test("a call without a permission request", async () => {
  const p = await script('(s, ctx) => ctx.http("https://example.com")');
  assert.equal((await p.run("s")).error.code, "denied");
});

test("a body has secrets only where the request says so", async () => {
  const p = await script('(s, ctx) => ctx.http({ url: "https://example.com", body: "{{secret.K}}", ...s.fields }).status', 'permissions: [{ use: "http", reason: "r" }],');
  for (const more of [{}, { bodySecrets: true }]) {
    const request = { url: "https://example.com", body: "{{secret.K}}", ...more };
    const r = await p.run("s", more, { calls: [{ function: "sentinel_http", request, ok: { status: 204 } }] });
    assert.equal(r.output, 204);
    assert.deepEqual(r.calls.find((c) => c.function === "sentinel_http").request, request);
  }
});

test("async steps", async () => {
  assert.equal((await (await script("async () => { await null; return 7; }")).run("s")).output, 7);
  assert.match((await (await script("() => new Promise(() => {})")).run("s")).error.message, /never settles/);
});

test("an invalid script", async () => {
  await assert.rejects(load("/nowhere/plugin.js"), /ENOENT/);
  await assert.rejects(script("1"), /run is not a function/);
});
