package llm

import "github.com/sentinel-runtime/sentinel/sdk"

const fields = `{
  "type": "object",
  "properties": {
    "prompt": {"type": "string", "description": "What to ask; may hold $references. Without it the model is asked to go on from the accumulated context."},
    "system": {"type": "string", "description": "Instructions above the conversation. The context and the variables so far are added to it."},
    "model": {"type": "string", "default": "auto", "description": "provider/name, or auto for the configured choice.", "examples": ["auto"]},
    "temperature": {"type": "number", "minimum": 0, "maximum": 2, "description": "Randomness of the reply. Default: the model's own."},
    "maxTokens": {"type": "integer", "minimum": 1, "description": "Most tokens of one reply. Default: the model's own."},
    "tools": {"type": "array", "items": {"type": "string"}, "x-sentinel": "tools", "description": "Commands the model may call; patterns such as code/* are allowed. An empty list is none. Without it: none, or every public command if parseToolCalls is true.", "examples": [["code/read", "code/search"]]},
    "parseToolCalls": {"type": "boolean", "description": "Carry out the tools the model calls and feed their results back. With false the calls are listed in the result and not carried out. Default: true if tools are given."},
    "schema": {"type": "object", "x-sentinel": "raw", "description": "JSON Schema the reply must fit. A reply that does not is asked for once more, then it is an error."},
    "maxTurns": {"type": "integer", "minimum": 1, "default": 25, "description": "Most replies of the model in this step."}
  },
  "additionalProperties": false
}`

// defaultTurns is the most replies of one step unless its fields say otherwise.
const defaultTurns = 25

// Step describes the type.
func Step() sdk.Step {
	return sdk.Step{
		Type:    "llm",
		Summary: "Asks a language model, which may use tools, and gives its reply.",
		Fields:  fields,
		Infer:   []string{"prompt"},
		Aliases: map[string]string{
			"systemPrompt":  "system",
			"maxIterations": "maxTurns",
			"agentMode":     "parseToolCalls",
		},
		Run: run,
	}
}

// A request is the step's fields as read.
type request struct {
	prompt   string
	system   string
	model    string
	temp     sdk.Value
	tokens   int64
	tools    []string // nil offers none
	useTools bool
	schema   sdk.Value
	maxTurns int64
}

// proceed stands for a prompt that is not given; providers want a message.
const proceed = "Go on from the context above."

func read(c *sdk.Context) (r request, err error) {
	fault := func(e error) {
		if err == nil {
			err = e
		}
	}
	text := func(name string) string {
		s, e := c.StringField(name)
		fault(e)
		return s
	}
	number := func(name string, fallback int64) int64 {
		n, e := c.IntField(name, 1, fallback)
		fault(e)
		return n
	}
	r.prompt, r.system, r.model = text("prompt"), text("system"), text("model")
	if r.prompt == "" {
		r.prompt = proceed
	}
	if r.temp = c.Field("temperature"); !r.temp.Given() {
		r.temp = sdk.Value{}
	} else if _, ok := r.temp.AsFloat(); !ok {
		fault(sdk.BadField("temperature", "want a number, got "+r.temp.Kind().String()))
	}
	r.tokens, r.maxTurns = number("maxTokens", 0), number("maxTurns", defaultTurns)
	if r.schema = c.Field("schema"); !r.schema.Given() {
		r.schema = sdk.Value{}
	}
	tools, given, e := c.StringsField("tools")
	fault(e)
	r.useTools, e = c.BoolField("parseToolCalls", given)
	fault(e)
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
