// A step plugin: it knows what pytest and pip write. pytest_output classifies lines for rules,
// python_errors the errors of steps and tickets for retries.

const text = (description) => ({ type: "string", description });

sentinel.plugin({
  name: "python_tools",
  version: "1.0.0",
  stateless: true,
  permissions: [
    {
      use: "provide",
      names: ["output_classifier", "error_classifier"],
      reason: "Rules name pytest_output, and errors of Python tools get the category that decides about retries.",
    },
  ],
  steps: {
    pytest_output: {
      summary: "Classifies the output of pytest and pip, line by line.",
      readOnly: true,
      fields: {
        type: "object",
        properties: {
          lines: {
            type: "array",
            description: "The lines.",
            items: { type: "object", properties: { text: text("One line."), stream: text("Where it was written.") }, required: ["text"] },
          },
        },
        required: ["lines"],
        additionalProperties: false,
      },
      output: { type: "object", properties: { lines: { type: "array", description: "For each line {classification, action}, or null." } }, required: ["lines"] },
      provides: { as: "output_classifier" },
      run: (step) => ({ lines: step.fields.lines.map((line) => lineClass(line.text)) }),
    },
    python_errors: {
      summary: "Tells the category of an error of pytest, pip or Python.",
      readOnly: true,
      fields: {
        type: "object",
        properties: {
          message: text("The error."),
          code: text("Its code."),
          source: text("step, ticket or operator."),
          exitCode: { type: "integer", description: "Exit code of the process that failed." },
        },
        required: ["message"],
        additionalProperties: false,
      },
      provides: { as: "error_classifier" },
      run: (step) => errorClass(step.fields),
    },
  },
});

// What a line is, by the first pattern that it matches. A dot for a passed test, lines about
// the machine, and what pip fetches are left out.
const lines = [
  [/^=+ .*\b[1-9]\d* (failed|errors?)\b.*=+$/, "error"],
  [/^=+ .*\b\d+ passed\b.*=+$/, "success"],
  [/^=+ no tests ran\b/, "error"],
  [/^(FAILED|ERROR) \S/, "error"],
  [/^E( {2,}|$)/, "error"],
  [/^(INTERNALERROR>|ERROR:|error: |Traceback \(most recent call last\))/, "error"],
  [/^\S+\.py:\d+: (\w+Error|Exception|Failed)\b/, "error"],
  [/^(\w+\.)*\w+(Error|Exception)(:|$)/, "error"],
  [/::\S+ (FAILED|ERROR)\b/, "error"],
  [/::\S+ PASSED\b/, "success"],
  [/::\S+ (SKIPPED|XFAIL|XPASS)\b/, "info"],
  [/^\S+\.py [.sxX]*[FE][.sxXFE]*( +\[ *\d+%\])?$/, "error"],
  [/^\S+\.py [.sxX]+( +\[ *\d+%\])?$/, "info", "suppress"],
  [/^\s*\S*:\d+: \w*Warning: |^=+ warnings summary =+$|^(WARNING:|DEPRECATION:)/, "warning"],
  [/^(platform|cachedir:|rootdir:|configfile:|plugins:|testpaths:) ?/, "verbose", "suppress"],
  [/^\s*(Collecting|Downloading|Using cached|Requirement already satisfied|Preparing metadata|Building wheel|Created wheel|Stored in directory|Getting requirements|Installing build dependencies)\b/, "verbose", "suppress"],
  [/^Successfully (installed|uninstalled|built)\b/, "success"],
  [/^collected \d+ items?/, "info"],
];

function lineClass(text) {
  for (const [pattern, classification, action] of lines) {
    if (pattern.test(text)) return action ? { classification, action } : { classification };
  }
  return null;
}

// What an error is. The categories without a retry are syntax and manual_review: what is
// missing or misspelt is missing at the next attempt too.
const errors = [
  [/(ReadTimeoutError|ConnectTimeoutError|NewConnectionError|ProtocolError|Temporary failure in name resolution)/, /\b(pip|pypi|urllib3|files\.pythonhosted\.org|HTTPSConnectionPool)\b/i, "api", "network"],
  [/THESE PACKAGES DO NOT MATCH THE HASHES/, null, "manual_review", "hash"],
  [/(No matching distribution found|Could not find a version that satisfies|ResolutionImpossible|conflicting dependencies)/, null, "syntax", "requirements"],
  [/externally-managed-environment/, null, "syntax", "environment"],
  [/(ModuleNotFoundError|ImportError): /, null, "syntax", "import"],
  [/\b(SyntaxError|IndentationError|TabError): /, null, "syntax", "python"],
  [/\bMemoryError\b/, /(Traceback|pytest|python)/i, "runtime", "memory"],
  [/\b[1-9]\d* failed\b|^FAILED \S+::|AssertionError/m, /(pytest|\.py\b)/, "logic", "tests"],
];

// Exit codes of pytest that say more than the text.
const exits = {
  1: ["logic", "tests"],
  2: ["syntax", "collection"],
  3: ["runtime", "pytest"],
  4: ["syntax", "usage"],
  5: ["syntax", "no_tests"],
};

function errorClass({ message, exitCode }) {
  for (const [pattern, near, category, subcategory] of errors) {
    if (pattern.test(message) && (!near || near.test(message))) return { category, subcategory, confidence: 0.9 };
  }
  const exit = /\bpytest\b/.test(message) ? exits[exitCode] : undefined;
  return exit ? { category: exit[0], subcategory: exit[1], confidence: 0.7 } : null;
}
