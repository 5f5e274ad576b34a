package main

import "github.com/sentinel-runtime/sentinel/sdk"

// call makes the host call that the field call names.
func call(c *sdk.Context) (sdk.Value, error) {
	name, err := c.StringField("call")
	if err != nil {
		return sdk.Value{}, err
	}
	catch, err := c.BoolField("catch", false)
	if err != nil {
		return sdk.Value{}, err
	}
	wrapper, ok := wrappers[name]
	if !ok {
		return sdk.Value{}, sdk.BadField("call", "want the name of a host call, got "+sdk.Quote(name))
	}
	answer, err := wrapper(c, c.Field("args"))
	switch {
	case err == nil:
		return sdk.Object(sdk.F("ok", answer)), nil
	case catch:
		return sdk.Object(sdk.F("error", sdk.ErrorValue(sdk.AsError(err)))), nil
	}
	return sdk.Value{}, err
}

// wrappers get the keys of the request and rebuild the answer from the result of the
// method, which they call as a step does.
var wrappers = map[string]func(c *sdk.Context, args sdk.Value) (sdk.Value, error){
	"command": func(c *sdk.Context, args sdk.Value) (sdk.Value, error) {
		if text(args, "by") == "model" {
			tools, _ := args.Get("tools").AsStrings()
			return c.ToolCommand(text(args, "command"), args.Get("params"), tools)
		}
		return c.Command(text(args, "command"), args.Get("params"))
	},
	"llm": llm,
	"watch": func(c *sdk.Context, args sdk.Value) (sdk.Value, error) {
		return c.Watch(text(args, "executionId"), args.Get("rules"), text(args, "until"))
	},
	"eval": func(c *sdk.Context, args sdk.Value) (sdk.Value, error) {
		value, truthy, err := c.Eval(text(args, "expression"), args.Get("vars"))
		return sdk.Object(sdk.F("value", value), sdk.F("truthy", sdk.Bool(truthy))), err
	},
	"var_get": func(c *sdk.Context, args sdk.Value) (sdk.Value, error) {
		value, found, err := c.GetVar(text(args, "name"))
		return sdk.Object(sdk.F("value", value), sdk.F("found", sdk.Bool(found))), err
	},
	"var_set": func(c *sdk.Context, args sdk.Value) (sdk.Value, error) {
		for name, value := range args.Get("values").Fields() {
			if err := c.SetVar(name, value); err != nil {
				return sdk.Value{}, err
			}
		}
		return sdk.Object(), nil
	},
	"spawn": func(c *sdk.Context, args sdk.Value) (sdk.Value, error) {
		if id := text(args, "sentinel"); id != "" {
			run, err := c.SpawnNamed(id, args.Get("inputs"))
			return sdk.Object(sdk.F("run", sdk.String(run)), sdk.F("sentinel", sdk.String(id))), err
		}
		run, id, err := c.Spawn(text(args, "field"), args.Get("inputs"))
		return sdk.Object(sdk.F("run", sdk.String(run)), sdk.F("sentinel", sdk.String(id))), err
	},
	"emit": func(c *sdk.Context, args sdk.Value) (sdk.Value, error) {
		id, err := c.Emit(text(args, "event"), args.Get("data"))
		return sdk.Object(sdk.F("id", sdk.String(id))), err
	},
	"wait": wait,
	"checkpoint": func(c *sdk.Context, args sdk.Value) (sdk.Value, error) {
		return sdk.Object(), c.Checkpoint(args.Get("state"))
	},
	"http": func(c *sdk.Context, args sdk.Value) (sdk.Value, error) {
		r, err := c.HTTP(sdk.Request{
			Method: text(args, "method"), URL: text(args, "url"), Headers: args.Get("headers"),
			Body: text(args, "body"), BodySecrets: args.Get("bodySecrets").BoolOr(false), TimeoutMs: args.Get("timeoutMs").IntOr(0),
		})
		return sdk.Object(sdk.F("status", sdk.Int(int64(r.Status))), sdk.F("headers", r.Headers), sdk.F("body", sdk.String(r.Body)),
			sdk.F("encoding", sdk.Text(r.Encoding)), sdk.F("truncated", sdk.Bool(r.Truncated))), err
	},
	"file": file,
	"log": func(c *sdk.Context, args sdk.Value) (sdk.Value, error) {
		message := text(args, "message")
		switch text(args, "level") {
		case "debug":
			c.Debug(message)
		case "info":
			c.Info(message)
		case "warn":
			c.Warn(message)
		case "error":
			c.Error(message)
		default:
			return sdk.Value{}, sdk.BadField("args.level", "want debug, info, warn or error")
		}
		return sdk.Object(), nil
	},
	"now": func(c *sdk.Context, _ sdk.Value) (sdk.Value, error) {
		unixMs, iso, err := c.Now()
		return sdk.Object(sdk.F("unixMs", sdk.Int(unixMs)), sdk.F("iso", sdk.String(iso))), err
	},
}

func text(v sdk.Value, key string) string { return v.Get(key).StringOr("") }

func llm(c *sdk.Context, args sdk.Value) (sdk.Value, error) {
	turn := sdk.Turn{
		Conversation: text(args, "conversation"), System: text(args, "system"), Context: args.Get("context").BoolOr(false),
		Model: text(args, "model"), Temperature: args.Get("temperature"), MaxTokens: args.Get("maxTokens").IntOr(0), Schema: args.Get("schema"),
	}
	turn.Tools, _ = args.Get("tools").AsStrings()
	turn.Append, turn.Aside = messages(args.Get("append")), args.Get("aside").BoolOr(false)
	for _, r := range args.Get("replace").Items() {
		turn.Replace = append(turn.Replace, sdk.Replacement{From: int(r.Get("from").IntOr(0)), To: int(r.Get("to").IntOr(0)), With: messages(r.Get("with"))})
	}
	r, err := c.LLM(turn)
	if err != nil {
		return sdk.Value{}, err
	}
	calls := make([]sdk.Value, len(r.ToolCalls))
	for i, t := range r.ToolCalls {
		calls[i] = sdk.Object(sdk.F("id", sdk.String(t.ID)), sdk.F("name", sdk.String(t.Name)), sdk.F("arguments", t.Arguments))
	}
	return sdk.Object(
		sdk.F("conversation", sdk.String(r.Conversation)), sdk.F("text", sdk.String(r.Text)), sdk.F("json", r.JSON),
		sdk.F("problems", sdk.Strings(r.Problems)), sdk.F("toolCalls", sdk.List(calls...)), sdk.F("finish", sdk.String(r.Finish)),
		sdk.F("inputLimit", sdk.Int(r.InputLimit)), sdk.F("usage", r.Usage.Value()), sdk.F("provider", sdk.String(r.Provider)), sdk.F("model", sdk.String(r.Model)),
	), nil
}

func messages(list sdk.Value) (out []sdk.Message) {
	for _, m := range list.Items() {
		out = append(out, sdk.Message{
			Role: text(m, "role"), Content: text(m, "content"), ToolCallID: text(m, "toolCallId"), Name: text(m, "name"), IsError: m.Get("isError").BoolOr(false),
		})
	}
	return out
}

// wait executes the wait in args.
func wait(c *sdk.Context, args sdk.Value) (answer sdk.Value, err error) {
	timeoutMs := args.Get("timeoutMs").IntOr(0)
	waited := sdk.Object(sdk.F("timedOut", sdk.Bool(false)))
	switch {
	case args.Get("durationMs").Given():
		return waited, c.Sleep(args.Get("durationMs").IntOr(0))
	case args.Get("until").Given():
		return waited, c.WaitUntil(text(args, "until"))
	case args.Get("event").Given():
		event, err := c.WaitEvent(text(args, "event"), timeoutMs)
		return waited.With("event", event), err
	case args.Get("run").Given():
		result, err := c.WaitRun(text(args, "run"))
		return waited.With("result", result), err
	}
	ask := args.Get("decision")
	approvers, _ := ask.Get("approvers").AsStrings()
	var d sdk.Decision
	if kind := text(ask, "callKind"); kind != "" {
		d, err = c.DecideCall(text(ask, "prompt"), kind)
	} else {
		d, err = c.Decide(text(ask, "prompt"), approvers, timeoutMs)
	}
	verdict := "reject"
	if d.Approved {
		verdict = "approve"
	}
	return waited.With("decision", sdk.Object(
		sdk.F("verdict", sdk.String(verdict)), sdk.F("by", sdk.String(d.By)), sdk.F("at", sdk.String(d.At)), sdk.F("comment", sdk.Text(d.Comment)),
	)), err
}
