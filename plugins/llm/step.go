package llm

import "github.com/sentinel-runtime/sentinel/sdk"

const fields = `{
  "type": "object",
  "properties": {
    "prompt": {"type": "string", "description": "Prompt; may contain $references. Without it the model continues from the context."},
    "system": {"type": "string", "description": "System prompt."},
    "context": {"type": ["boolean", "object"], "description": "What is put before the prompt, marked as data: true: $ragContext, the inputs and the variables; false: nothing. Default: $ragContext if the definition has recipe or ragSources; true without a prompt. overflow: what a conversation near the window of the model does.", "properties": {
      "add": {"type": "boolean"}, "overflow": {"type": "string", "enum": ["shorten", "fail"], "default": "shorten"}}, "additionalProperties": false},
    "model": {"type": ["string", "array"], "items": {"type": "string", "minLength": 1}, "minItems": 1, "maxItems": 16, "default": "auto", "description": "provider/name; a name alone, whose family gives the provider; tiny, small, medium, large or sota, as configured; or auto. A list is tried in order.", "examples": ["auto", ["anthropic/claude-sonnet-5-5", "openai/gpt-6-sol"]]},
    "temperature": {"type": "number", "minimum": 0, "maximum": 2, "description": "Randomness. Default: the model's own."},
    "maxTokens": {"type": "integer", "minimum": 1, "description": "Maximum tokens of a reply with its thinking. A reply cut there has stopReason length; with a schema that is an error. A smaller budget or window lowers it. Default: 8192; 16384 if the model's maximum is known."},
    "tools": {"type": "array", "items": {"type": "string"}, "x-sentinel": "tools", "description": "Commands for the model, or patterns such as code/*. Default: none, or every public command if parseToolCalls is true.", "examples": [["code/read", "code/search"]]},
    "parseToolCalls": {"type": "boolean", "description": "Execute the tool calls of the model. With false they are only listed in the result. Default: true if there are tools."},
    "schema": {"type": "object", "x-sentinel": "raw", "description": "JSON Schema of the reply. The model is asked once to correct one that does not match; then it is an error."},
    "maxTurns": {"type": "integer", "minimum": 1, "default": 25, "description": "Maximum replies of the model."},
    "maxToolCalls": {"type": "integer", "minimum": 1, "description": "Maximum tool calls of this step; then the model may answer. Default: no maximum."},
    "confirm": {"type": "object", "description": "Tool calls that a person approves, once for each kind: a command, or the program and first words of a shell line.", "properties": {
      "commands": {"type": "array", "items": {"type": "string"}, "description": "Commands, or patterns such as code/*."},
      "mode": {"type": "string", "enum": ["ask", "deny", "off"], "default": "ask", "description": "ask waits for a person, deny refuses the calls."}}, "required": ["commands"], "additionalProperties": false},
    "checks": {"x-sentinel": "steps", "description": "Steps that check a reply without tool calls. If the last one has success false, the model continues with its text."},
    "maxChecks": {"type": "integer", "minimum": 1, "default": 3, "description": "How often the checks are executed."}
  },
  "additionalProperties": false
}`

// Defaults of maxTurns and maxChecks.
const (
	defaultTurns  = 25
	defaultChecks = 3
)

const output = `{
  "type": "object",
  "description": "The fields of a reply that is a JSON object are fields of the output too. A reply that is a JSON array is itself the output.",
  "properties": {
    "text": {"type": "string", "description": "Text of the last reply."},
    "json": {"description": "The reply as JSON, if it is JSON."},
    "success": {"type": "boolean", "description": "False if the reply was cut, or has success false."},
    "stopReason": {"type": "string", "enum": ["stop", "length", "tools", "limit", "repeated", "checks", "empty"], "description": "Why the conversation ended. length: the reply was cut at maxTokens. tools: the calls are listed, not executed. limit: maxTurns or maxToolCalls. repeated: the same calls three times in a row. checks: they failed maxChecks times. empty: neither text nor a tool call, twice."},
    "note": {"type": "string", "description": "What limited the reply, if something did."},
    "model": {"type": "string", "description": "Model that answered."},
    "provider": {"type": "string", "description": "Its provider."},
    "usage": {"type": "object", "properties": {"inputTokens": {}, "outputTokens": {}, "costUsd": {}, "calls": {}}, "additionalProperties": false},
    "turns": {"type": "integer", "description": "Requests to the model."},
    "toolCalls": {"type": "array", "description": "For each tool call {name, arguments, success, error}."},
    "shortened": {"type": "integer", "description": "How often the conversation was shortened; absent if never."},
    "denied": {"type": "integer", "description": "With confirm: calls that were refused because its mode is deny; absent if none was."},
    "check": {"description": "With checks: output of their last step when they were executed last."},
    "checkRuns": {"type": "integer", "description": "With checks: how often they were executed."}
  }
}`

// Step returns the step type.
func Step() sdk.Step {
	return sdk.Step{
		Type:    "llm",
		Summary: "Asks a language model, which may use tools, and returns its reply.",
		Fields:  fields,
		Output:  output,
		Infer:   []string{"prompt"},
		Aliases: map[string]string{
			"systemPrompt":  "system",
			"maxIterations": "maxTurns",
			"agentMode":     "parseToolCalls",
		},
		Run: run,
	}
}

// A request is the decoded fields of the step.
type request struct {
	prompt   string
	system   string
	context  bool     // put $ragContext and the variables before the prompt
	sources  bool     // put $ragContext alone before the prompt
	shorten  bool     // a conversation near the window of the model
	models   []string // tried in order; at least one
	temp     sdk.Value
	tokens   int64
	tools    []string // nil for none
	useTools bool
	schema   sdk.Value
	maxTurns int64
	maxCalls int64 // of tools; 0 for no limit
	confirm  confirmation
	checks   int64 // steps that check a reply; 0 for none
	maxRuns  int64 // of the checks
}

// proceed is the default prompt; providers require a message.
const proceed = "Go on from the context above."

// readContext reads the field context, of either form. A step that says nothing of it gets the
// variables that its prompt refers to, which are part of the prompt, and all if it has none.
func (r *request) readContext(c *sdk.Context) (err error) {
	r.shorten = true
	v := c.Field("context")
	given := v.Given() && v.Kind() != sdk.KindObject
	if v.Kind() == sdk.KindObject {
		given = v.Get("add").Given()
		r.context = v.Get("add").BoolOr(false)
	} else if r.context, err = c.BoolField("context", false); err != nil {
		return err
	}
	if !given {
		r.context, r.sources = r.prompt == "", r.prompt != ""
	}
	if v.Kind() != sdk.KindObject {
		return nil
	}
	switch mode := v.Get("overflow").StringOr("shorten"); mode {
	case "shorten", "fail":
		r.shorten = mode == "shorten"
		return nil
	default:
		return sdk.BadField("context.overflow", "want shorten or fail, got "+sdk.Quote(mode))
	}
}

// read reads the fields of the step and returns the first problem.
func read(c *sdk.Context) (r request, err error) {
	check := func(e error) {
		if err == nil {
			err = e
		}
	}
	text := func(name string) string {
		s, e := c.StringField(name)
		check(e)
		return s
	}
	number := func(name string, fallback int64) int64 {
		n, e := c.IntField(name, 1, fallback)
		check(e)
		return n
	}
	r.prompt, r.system = text("prompt"), text("system")
	e := r.readContext(c)
	check(e)
	if c.Field("model").Kind() == sdk.KindList {
		var e error
		r.models, _, e = c.StringsField("model")
		check(e)
	} else {
		r.models = []string{text("model")}
	}
	if len(r.models) == 0 {
		check(sdk.BadField("model", "want at least one model"))
	}
	if r.prompt == "" {
		r.prompt = proceed
	}
	if r.temp = c.Field("temperature"); !r.temp.Given() {
		r.temp = sdk.Value{}
	} else if _, ok := r.temp.AsFloat(); !ok {
		check(sdk.BadField("temperature", "want a number, got "+r.temp.Kind().String()))
	}
	r.tokens, r.maxTurns = number("maxTokens", 0), number("maxTurns", defaultTurns)
	r.maxCalls = number("maxToolCalls", 0)
	r.checks, r.maxRuns = c.Steps("checks"), number("maxChecks", defaultChecks)
	r.confirm, e = readConfirmation(c.Field("confirm"))
	check(e)
	if r.schema = c.Field("schema"); !r.schema.Given() {
		r.schema = sdk.Value{}
	}
	tools, given, e := c.StringsField("tools")
	check(e)
	r.useTools, e = c.BoolField("parseToolCalls", given)
	check(e)
	switch {
	case len(tools) > 0:
		r.tools = tools
	case !given && r.useTools:
		r.tools = []string{"*"}
	default:
		r.useTools = false
	}
	return r, err
}
