// A step plugin: it provides the step type {{name}}.

sentinel.plugin({
  name: "{{name}}",
  version: "0.1.0",
  // A plugin may do what it asks for here and the operator allows:
  // asks: [{ use: "...", names: [...], reason: "why, in words" }],
  steps: {
    {{name}}: {
      summary: "Writes a text in capital letters.",
      // The JSON Schema of the step's own fields. People see it in their editor,
      // and the host checks a definition against it.
      fields: {
        type: "object",
        properties: {
          text: { type: "string", description: "The text to change." },
          times: { type: "integer", minimum: 1, default: 1, description: "How often the mark is put behind it." },
        },
        required: ["text"],
        additionalProperties: false,
      },
      readOnly: true,
      run,
    },
  },
});

/**
 * Carries out one step. What it returns becomes the value of outputTo.
 * @param {Step<{ text: string, times?: number }>} step
 * @param {Context} ctx
 */
function run(step, ctx) {
  const { text, times = 1 } = step.fields;
  if (times > 100) throw SentinelError.badField("times", "want at most 100");
  ctx.info("changing " + text);
  return { text: text.toUpperCase() + "!".repeat(times) };
}
