package llm

import (
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk"
)

// A conversation that nears the window of its model is shortened before the next turn: old
// tool results are left out first, then a summary by the model takes the place of all but
// the last calls. What was left out stays in the journal. All of it follows from the
// recorded turns, so that a replay does the same.
//
// Where the window is not known, the error of a turn that is too long is the reason, and its
// size is the limit from then on.

// Parts of the limit of a turn, in tenths.
const (
	nearTenths   = 9 // from which a conversation is shortened
	targetTenths = 6 // to which its tool results are left out
	enoughTenths = 8 // above which that does not do
)

// maxShorten is how often one turn is shortened because its server refuses it.
const maxShorten = 6

// Bounds of what is kept beside a summary, in bytes.
const (
	maxKept    = 32 << 10 // of all
	maxProblem = 4 << 10  // of one error
	maxOpen    = 8        // errors
)

// A problem is a tool call that failed and has not succeeded since.
type problem struct{ call, path, text string }

// isTooLong reports whether a turn failed because the conversation is larger than the window
// of the model.
func isTooLong(e *sdk.Error) bool { return e.Code == sdk.CodeLimit && e.Field == "append" }

// near reports whether the next turn is near the limit.
func (t *conversation) near(messages []sdk.Message) bool {
	limit := t.history.limit
	return limit > 0 && t.history.estimate(messages) > limit/10*nearTenths
}

// resultLimit returns how many bytes the results of n calls may have, each: a quarter of the
// window together, as far as it is known.
func (t *conversation) resultLimit(n int) int {
	limit := min(maxResult, maxAllResults/n)
	if window := t.history.limit; window > 0 {
		limit = min(limit, max(int(min(window, maxAllResults))/4*bytesAdded/n, 512))
	}
	return limit
}

// shorten shortens the conversation for the next turn, and returns the messages of that. ok is
// false if nothing is left to shorten.
func (t *conversation) shorten(messages []sdk.Message) (out []sdk.Message, ok bool, err error) {
	h := &t.history
	before := h.estimate(messages)
	limit := h.limit
	for i, m := range messages {
		if text := cutResult(m.Content, t.resultLimit(len(messages))); m.Role == "tool" && len(text) < len(m.Content) {
			messages[i].Content, ok = text, true
		}
	}
	results, size := h.leaveOut(messages, limit/10*targetTenths)
	how := strconv.Itoa(results) + " tool results of " + strconv.Itoa(size) + " bytes are left out"
	if h.estimate(messages) > limit/10*enoughTenths && h.fold < len(h.entries) {
		if h.fold == 0 {
			if err = t.summarize(messages); err != nil {
				return nil, false, err
			}
			if h.fold > 0 {
				how += ", and a summary takes the place of earlier messages"
			}
		}
		if h.fold == 0 || h.estimate(messages) > limit/10*enoughTenths {
			messages = t.foldAll(messages)
			how += ", and the last calls became a text"
		}
		ok = true
	}
	if ok = ok || results > 0; ok {
		t.shortened++
		t.c.Warn("the conversation nears the window of the model and was shortened before turn " + strconv.FormatInt(t.turns+1, 10) + ": " + how +
			"; about " + strconv.FormatInt(before, 10) + " tokens became " + strconv.FormatInt(h.estimate(messages), 10) + ", the limit is " + strconv.FormatInt(limit, 10))
	}
	return messages, ok, nil
}

const summarize = `[The conversation is too long for you to read on. Write a summary of it, in whose place you will continue the task. Do not call tools. Keep whole: the plan, what is done and what is next; decisions and their reasons; what persons approved or rejected; names, places and facts that you need; errors that are open. Leave out what the task, which you will see again, says.]`

// summarize has the model write a summary, in a turn beside the conversation, and puts that
// in the place of all messages but its last calls, to which the given messages belong. Of a
// conversation that has only those there is none.
func (t *conversation) summarize(messages []sdk.Message) error {
	last := t.history.lastReply()
	if last > 1 {
		text, err := t.summary(last)
		if err != nil {
			return err
		}
		if text != "" {
			t.summaries = text
		}
		t.history.fold = last
	}
	t.history.folded = t.r.prompt + t.kept(len(messages) > 0 && messages[0].Role == "user")
	return nil
}

// foldAll makes the last calls and their results a text too, because they are too large as
// well. All of the conversation is then one message.
func (t *conversation) foldAll(messages []sdk.Message) []sdk.Message {
	t.history.fold = len(t.history.entries)
	for _, m := range messages {
		t.history.folded += "\n\n"
		for _, call := range t.reply.ToolCalls {
			if m.Role == "tool" && call.ID == m.ToolCallID {
				t.history.folded += "The result of your last call, " + describe(call) + ":\n"
			}
		}
		t.history.folded += m.Content
	}
	return nil
}

// cutResult shortens a result of a tool, and keeps the notes at its end.
func cutResult(text string, limit int) string {
	const note = "\n\n[Note: "
	for i := max(len(text)-500, 0); i+len(note) <= len(text); i++ {
		if text[i:i+len(note)] == note {
			return shorten(text[:i], limit) + text[i:]
		}
	}
	return shorten(text, limit)
}

// summary returns what the model writes of the first last messages, "" if it writes nothing.
func (t *conversation) summary(last int) (string, error) {
	h := &t.history
	request := []sdk.Message{{Role: "user", Content: summarize}}
	drop := 0 // messages behind the task that are left out, because the rest is large enough
	for n := 0; n < maxShorten; n++ {
		for drop < last && t.withoutFirst(drop, last)+added(request) > h.limit {
			drop = t.nextRound(drop, last)
		}
		turn := t.request(request)
		turn.Aside, turn.Schema = true, sdk.Value{}
		if drop > 1 {
			turn.Replace = append(turn.Replace, sdk.Replacement{From: 1, To: drop})
		}
		for i := max(drop, 1); i < last; i++ {
			if e := h.entries[i]; e.out {
				turn.Replace = append(turn.Replace, sdk.Replacement{From: i, To: i + 1, With: []sdk.Message{e.mark}})
			}
		}
		turn.Replace = append(turn.Replace, sdk.Replacement{From: last, To: len(h.entries)})
		reply, failed := t.ask(turn)
		if failed == nil {
			t.usage.Add(reply.Usage)
			return trim(reply.Text), nil
		}
		if e := sdk.AsError(failed); !isTooLong(e) || drop >= last {
			if isTooLong(e) {
				return "", nil
			}
			return "", failed
		}
		drop = t.nextRound(drop, last)
	}
	return "", nil
}

// withoutFirst returns the tokens of the first last messages without those from the second
// up to drop.
func (t *conversation) withoutFirst(drop, last int) int64 {
	tokens := t.history.estimate(nil)
	for i, e := range t.history.entries {
		size := e.size
		if e.out {
			size = len(e.mark.Content)
		}
		if i > 0 && i < drop || i >= last {
			tokens -= int64(size) / bytesLeftOut
		}
	}
	return tokens
}

// nextRound returns the index behind the round that begins at drop: a message of the model
// with what answers it.
func (t *conversation) nextRound(drop, last int) int {
	for drop = max(drop, 1) + 1; drop < last && t.history.entries[drop].role != "assistant"; drop++ {
	}
	return drop
}

// kept returns what continues the task instead of the messages that the summary was made of:
// that, the files that were changed and the errors that are open. withChecks reports that the
// messages that follow say what the checks found.
func (t *conversation) kept(withChecks bool) string {
	text := "\n\n[Earlier messages were left out, because the conversation was too long. They are in the journal. What is below takes their place: go on from there, and read files again if you need them.]\n\n## Your summary\n"
	if t.summaries == "" {
		text += "There is none: look at the files to see what is done."
	} else {
		text += shorten(t.summaries, maxKept)
	}
	if len(t.changed) > 0 {
		text += "\n\n## Files that you have changed\n- " + shorten(join(t.changed, "\n- "), maxKept)
	}
	open := ""
	for _, p := range t.problems {
		open += "\n- " + p.call + ": " + p.text
	}
	if t.checkRuns > 0 && !withChecks && !t.check.Get("success").BoolOr(true) {
		open += "\n- the checks: " + shorten(t.check.Get("text").StringOr(""), maxProblem)
	}
	if open != "" {
		text += "\n\n## Errors that are open\n" + shorten(open[1:], maxKept)
	}
	return text
}

// noteCall keeps what a summary must not lose of a call: a file that it changed, and an error.
func (t *conversation) noteCall(call sdk.ToolCall, failed bool, text string) {
	name, path := describe(call), ""
	if call.Name == "code/edit" || call.Name == "code/write" || call.Name == "fs/write" {
		path = pathOf(argumentsOf(call))
	}
	var open []problem
	for _, p := range t.problems {
		if p.call != name && (path == "" || p.path != path) {
			open = append(open, p)
		}
	}
	if t.problems = open; failed {
		if len(open) == maxOpen {
			t.problems = open[1:]
		}
		t.problems = append(t.problems, problem{name, path, shorten(text, maxProblem)})
		return
	}
	for _, have := range t.changed {
		if have == path {
			return
		}
	}
	if path != "" {
		t.changed = append(t.changed, path)
	}
}

// pathOf returns the path in the arguments of a file command, under the names that it takes.
func pathOf(arguments sdk.Value) string {
	for _, name := range []string{"path", "file_path", "filePath", "file"} {
		if path := arguments.Get(name).StringOr(""); path != "" {
			return path
		}
	}
	return ""
}

// describe returns a call as text, of at most 300 bytes or so.
func describe(call sdk.ToolCall) string {
	return call.Name + " " + shorten(call.Arguments.String(), 200)
}

// markOf returns what takes the place of a result when it is left out.
func (t *conversation) markOf(m sdk.Message, call sdk.ToolCall, number int) sdk.Message {
	m.Content = "[The result of " + describe(call) + " was left out, because the conversation is long: " + strconv.Itoa(len(m.Content)) +
		" bytes. The journal has it as tool call " + strconv.Itoa(number) + " of this step. Make the call again if you need its result.]"
	return m
}
