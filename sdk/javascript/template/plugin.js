// A step plugin: it provides the step type {{name}}.

sentinel.plugin({
  name: "{{name}}",
  version: "0.1.0",
  // The permissions that the plugin requests, which the operator may grant:
  // permissions: [{ use: "...", names: [...], reason: "the reason" }],
  steps: {
    {{name}}: {
      summary: "Writes a text in capital letters.",
      // The JSON Schema of the step's own fields. Editors use it for completion,
      // and the host checks definitions against it.
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
 * Executes one step. The result becomes the value of outputTo.
 * @param {Step<{ text: string, times?: number }>} step
 * @param {Context} ctx
 */
function run(step, ctx) {
  const { text, times = 1 } = step.fields;
  if (times > 100) throw SentinelError.badField("times", "want at most 100");
  ctx.info("changing " + text);
  return { text: text.toUpperCase() + "!".repeat(times) };
}
