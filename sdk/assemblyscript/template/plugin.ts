// A step plugin: it provides the step type {{name}}.
import { Context, Outcome, Step, Value, badField, object, ok, plugin, text } from "./sdk";

// The JSON Schema of the step's own fields. Editors use it for completion, and the host
// checks definitions against it.
const fields = `{
  "type": "object",
  "properties": {
    "text": {"type": "string", "description": "The text to change."},
    "times": {"type": "integer", "minimum": 1, "default": 1, "description": "How often the mark is put behind it."}
  },
  "required": ["text"],
  "additionalProperties": false
}`;

// A plugin requests permissions like this: plugin(...).permission("http", ["api.example.com"], "the reason")
plugin("{{name}}", "0.1.0")
  .step(new Step("{{name}}", "Writes a text in capital letters.", fields, run).reads());

// run executes one step. Its output becomes the value of outputTo.
function run(c: Context): Outcome<Value> {
  const words = c.field("text").asText();
  const times = c.field("times").asInt(1);
  if (times > 100) return Outcome.fail<Value>(badField("times", "want at most 100"));
  c.info("changing " + words);
  return ok(object().set("text", text(words.toUpperCase() + "!".repeat(<i32>times))));
}
