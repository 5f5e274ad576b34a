import assert from "node:assert/strict";
import { test } from "node:test";
import { cases, load } from "./sdk/testing.mjs";

const plugin = await load(new URL("plugin.js", import.meta.url));
await cases(plugin, new URL("tests/cases.json", import.meta.url));

test("it says what it does", async () => {
  const { output, logs } = await plugin.run("{{name}}", { text: "hey", times: 3 });
  assert.deepEqual(output, { text: "HEY!!!" });
  assert.deepEqual(logs, [{ level: "info", message: "changing hey" }]);
});
