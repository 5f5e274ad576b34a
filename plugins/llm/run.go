package llm

import "github.com/sentinel-runtime/sentinel/sdk"

// Values of stopReason, besides those of a reply, stop and length.
const (
	stopTools    = "tools"    // calls are listed, not executed
	stopLimit    = "limit"    // maxTurns or maxToolCalls reached
	stopRepeated = "repeated" // the same calls three times in a row
	stopChecks   = "checks"   // the checks failed maxChecks times
	stopEmpty    = "empty"    // neither text nor a tool call, twice
)

// conversation is the state of one conversation with a model.
type conversation struct {
	c         *sdk.Context
	r         request
	turns     int64
	usage     sdk.Usage
	calls     []sdk.Value // tool calls for the result
	model     int         // index of the model that answered last
	executed  int64       // number of the tool calls that were executed
	repeats   repeats
	reply     sdk.Reply // the last one
	corrected bool      // the model was asked to correct its reply, or to give one
	approved  approvals
	denied    int64     // calls that were refused because no person is asked
	check     sdk.Value // result of the checks when they were executed last
	checkRuns int64
	history   history
	marks     []sdk.Message // of the tool results of the next turn
	shortened int64         // how often the conversation was shortened
	tooLong   error         // of a turn that is larger than the window
	summaries string        // the summary that the conversation begins with
	changed   []string      // files that calls of the model have changed
	problems  []problem     // calls of the model that failed
}

func run(c *sdk.Context) (sdk.Value, error) {
	r, err := read(c)
	if err != nil {
		return sdk.Value{}, err
	}
	t := &conversation{c: c, r: r}
	next := []sdk.Message{{Role: "user", Content: r.prompt}}
	for {
		if err := t.turn(next); err != nil {
			return sdk.Value{}, err
		}
		if len(t.reply.ToolCalls) == 0 {
			var end string
			if next, end, err = t.judge(); err != nil {
				return sdk.Value{}, err
			}
			if end == stopEmpty {
				return t.output(end, "The model replied with neither text nor a tool call."), nil
			}
			if end != "" {
				return t.output(end, ""), nil
			}
			continue
		}
		if !r.useTools {
			t.skip("not executed")
			return t.output(stopTools, ""), nil
		}
		if t.turns >= r.maxTurns {
			t.skip("not executed: maxTurns reached")
			return t.output(stopLimit, "The model still wanted tools when maxTurns was reached."), nil
		}
		if t.callsLeft() == 0 {
			t.skip("not executed: maxToolCalls reached")
			return t.output(stopLimit, "The model still wanted tools when maxToolCalls was reached."), nil
		}
		var name string
		if next, name, err = t.useTools(); err != nil {
			return sdk.Value{}, err
		}
		if name != "" {
			return t.output(stopRepeated, "The model made the same call of "+name+" three times in a row."), nil
		}
	}
}

// judge decides whether a reply without tool calls is the last one. It returns the reason
// to end, or the message with which the model continues.
func (t *conversation) judge() (next []sdk.Message, end string, err error) {
	if t.reply.Finish == "length" && t.r.schema.Exists() {
		return nil, "", lengthError(t.reply)
	}
	if problems := t.schemaProblems(); len(problems) > 0 {
		if t.corrected || t.turns >= t.r.maxTurns {
			return nil, "", schemaError(problems)
		}
		t.corrected = true
		return []sdk.Message{{Role: "user", Content: correction(problems)}}, "", nil
	}
	// Without checks nothing else says whether the work is done.
	if t.r.checks == 0 && t.reply.Finish == "stop" && trim(t.reply.Text) == "" && !t.reply.JSON.Exists() {
		if t.corrected || t.turns >= t.r.maxTurns {
			return nil, stopEmpty, nil
		}
		t.corrected = true
		return []sdk.Message{{Role: "user", Content: "Your reply is empty. Reply with text, or call a tool."}}, "", nil
	}
	if t.r.checks == 0 || t.reply.Finish == "length" {
		return nil, t.reply.Finish, nil
	}
	return t.runChecks()
}

// turn appends messages and gets the reply. A conversation that nears the window of the model
// is shortened before.
func (t *conversation) turn(messages []sdk.Message) error {
	marks := t.marks
	t.marks = nil
	force := false
	for n := 0; ; n++ {
		if t.r.shorten && (force || t.near(messages)) {
			next, ok, err := t.shorten(messages)
			if err != nil {
				return err
			}
			if force && !ok {
				return t.tooLong
			}
			messages = next
		}
		turn := t.request(messages)
		turn.Replace = t.history.replacements()
		reply, err := t.ask(turn)
		if err == nil {
			t.turns++
			t.usage.Add(reply.Usage)
			t.history.answered(messages, marks, reply)
			t.reply = reply
			return nil
		}
		e := sdk.AsError(err)
		if n == 0 && (t.r.context || t.r.sources) && len(t.history.entries) == 0 && isTooLong(e) {
			continue // the host has learned the window from that, and cuts the context
		}
		if !t.r.shorten || n == maxShorten || len(t.history.entries) == 0 || !isTooLong(e) {
			return err
		}
		t.tooLong, force = err, true
		size := t.history.estimate(messages)
		if limit := t.history.limit; limit == 0 || size/5*4 < limit {
			t.history.limit = max(size/5*4, 1)
		} else {
			t.history.limit = max(limit/5*4, 1)
		}
	}
}

// request returns a turn of the conversation. The system prompt and the context are sent only
// in the first turn, because the host keeps them.
func (t *conversation) request(messages []sdk.Message) sdk.Turn {
	turn := sdk.Turn{
		Conversation: t.reply.Conversation,
		Append:       messages,
		Temperature:  t.r.temp,
		MaxTokens:    t.r.tokens,
		Tools:        t.r.tools,
		Schema:       t.r.schema,
	}
	if turn.Conversation == "" {
		turn.System, turn.Context, turn.Sources = t.r.system, t.r.context, t.r.sources
	}
	return turn
}
