package llm

import "github.com/sentinel-runtime/sentinel/sdk"

// How a step ended, beside the finish words of a reply: stop and length.
const (
	finishTools    = "tools"    // calls are listed and not carried out
	finishLimit    = "limit"    // maxTurns reached
	finishRepeated = "repeated" // the same calls again and again
)

// A talk is one conversation as far as it has come.
type talk struct {
	c     *sdk.Context
	r     request
	turns int64
	usage sdk.Usage
	calls []sdk.Value // of the tools, for the result
	seen  repeats
	reply sdk.Reply // the last one
	asked bool      // the reply was asked for a second time because of the schema
}

func run(c *sdk.Context) (sdk.Value, error) {
	r, err := read(c)
	if err != nil {
		return sdk.Value{}, err
	}
	t := &talk{c: c, r: r}
	next := []sdk.Message{{Role: "user", Content: r.prompt}}
	for {
		if err := t.turn(next); err != nil {
			return sdk.Value{}, err
		}
		if len(t.reply.ToolCalls) == 0 {
			problems := t.misfits()
			if len(problems) == 0 {
				return t.output(t.reply.Finish, ""), nil
			}
			if t.asked || t.turns >= r.maxTurns {
				return sdk.Value{}, misfit(problems)
			}
			t.asked = true
			next = []sdk.Message{{Role: "user", Content: again(problems)}}
			continue
		}
		if !r.useTools {
			t.skip("not carried out")
			return t.output(finishTools, ""), nil
		}
		if t.turns >= r.maxTurns {
			t.skip("not carried out: maxTurns reached")
			return t.output(finishLimit, "The model still wanted tools when maxTurns was reached."), nil
		}
		var name string
		if next, name, err = t.useTools(); err != nil {
			return sdk.Value{}, err
		}
		if name != "" {
			return t.output(finishRepeated, "The model made the same call of "+name+" three times in a row."), nil
		}
	}
}

// turn appends messages and takes the reply. What a conversation keeps is sent
// at its start only; the rest goes with every turn.
func (t *talk) turn(messages []sdk.Message) error {
	turn := sdk.Turn{
		Conversation: t.reply.Conversation,
		Append:       messages,
		Model:        t.r.model,
		Temperature:  t.r.temp,
		MaxTokens:    t.r.tokens,
		Tools:        t.r.tools,
		Schema:       t.r.schema,
	}
	if turn.Conversation == "" {
		turn.System, turn.Context = t.r.system, true
	}
	reply, err := t.c.LLM(turn)
	if err != nil {
		return err
	}
	t.turns++
	t.usage.Add(reply.Usage)
	t.reply = reply
	return nil
}
