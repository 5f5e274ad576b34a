// The cases under node. In a project of your own the helper is ./sdk/testing.mjs.
import { cases, load } from "../../../sdk/javascript/testing.mjs";

await cases(await load(new URL("plugin.js", import.meta.url)), new URL("tests/cases.json", import.meta.url));
