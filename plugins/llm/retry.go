package llm

import (
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk"
)

// delays are the waits before a turn is made again, in milliseconds, for a server that
// requests none.
func delays() []int64 { return []int64{2000, 4000, 8000} }

// ask makes a turn and returns the reply. If the turn fails for a transient reason, it
// is made again after a wait, which the host records like any wait of a step, so that
// the step can be unloaded meanwhile and continues after a crash. Each time it is a
// host call of its own: the host reserves its cost and shows it in the trace.
//
// With onError retry the definition says how often to retry, so the turn is made once.
func (t *conversation) ask(turn sdk.Turn) (sdk.Reply, error) {
	waits := delays()
	if t.c.Step.OnError == "retry" {
		waits = nil
	}
	for n := 1; ; n++ {
		reply, err := t.c.LLM(turn)
		if err == nil {
			return reply, nil
		}
		e := sdk.AsError(err)
		if !transient(e) {
			return sdk.Reply{}, err
		}
		if n > len(waits) {
			if n == 1 {
				return sdk.Reply{}, err
			}
			return sdk.Reply{}, sdk.Wrap("the turn failed "+strconv.Itoa(n)+" times, the last time", err)
		}
		delay := waits[n-1]
		if e.RetryAfterMs > 0 {
			delay = e.RetryAfterMs
		}
		t.c.Warn("the turn failed (" + strconv.Itoa(n) + " of " + strconv.Itoa(len(waits)+1) + " times) and is made again in " +
			seconds(delay) + ": " + e.Message)
		if err := t.c.Sleep(delay); err != nil {
			return sdk.Reply{}, err
		}
	}
}

// transient reports whether a turn that failed may succeed if it is made again. The
// host marks as permanent what a repetition cannot change: an account without credit, a
// wrong key, a context that is too long, a refusal.
func transient(e *sdk.Error) bool {
	return !e.Permanent && (e.Code == sdk.CodeUnavailable || e.Code == sdk.CodeTimeout)
}

// seconds returns a duration in milliseconds as text.
func seconds(ms int64) string {
	text := strconv.FormatInt(ms/1000, 10)
	if rest := ms % 1000; rest > 0 {
		text += "." + strconv.FormatInt(1000+rest, 10)[1:]
	}
	return text + " s"
}
