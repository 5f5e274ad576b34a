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
		reply, failed := t.askModels(turn)
		if failed == nil {
			return reply, nil
		}
		if !transient(failed) {
			return sdk.Reply{}, failed
		}
		if n > len(waits) {
			if n == 1 {
				return sdk.Reply{}, failed
			}
			return sdk.Reply{}, sdk.Wrap("the turn failed "+strconv.Itoa(n)+" times, the last time", failed)
		}
		delay := waits[n-1]
		if failed.RetryAfterMs > 0 {
			delay = failed.RetryAfterMs
		}
		t.c.Warn("the turn failed (" + strconv.Itoa(n) + " of " + strconv.Itoa(len(waits)+1) + " times) and is made again in " +
			seconds(delay) + ": " + failed.Message)
		if err := t.c.Sleep(delay); err != nil {
			return sdk.Reply{}, err
		}
	}
}

// askModels makes a turn with the models of the step in order until one answers. It
// begins with the one that answered last; after a wait that is the first one again. A
// model that an error names as fallback comes behind them.
// The error is transient if that of a model is.
func (t *conversation) askModels(turn sdk.Turn) (sdk.Reply, *sdk.Error) {
	var failed *sdk.Error
	all := ""
	for i := t.model; i < len(t.r.models); i++ {
		turn.Model = t.r.models[i]
		reply, err := t.c.LLM(turn)
		if err == nil {
			t.model = i
			return reply, nil
		}
		e := sdk.AsError(err)
		if e.Fallback != "" && !listed(t.r.models, e.Fallback) {
			t.r.models = append(t.r.models, e.Fallback)
		}
		models := t.r.models
		if len(models) == 1 || e.Code == sdk.CodeCancelled {
			return sdk.Reply{}, e
		}
		if i+1 < len(models) {
			t.c.Warn("model " + sdk.Quote(models[i]) + " did not answer, the next one is " + sdk.Quote(models[i+1]) + ": " + e.Message)
		}
		if all += e.Message; i+1 < len(models) {
			all += "; "
		}
		// Of transient errors the one that asks for the shortest wait counts.
		if failed == nil || transient(e) && (!transient(failed) || e.RetryAfterMs < failed.RetryAfterMs) {
			failed = e
		}
	}
	t.model = 0
	e := *failed
	e.Fallback, e.Message = "", "no model of the list answered: "+all
	return sdk.Reply{}, &e
}

func listed(models []string, name string) bool {
	for _, m := range models {
		if m == name {
			return true
		}
	}
	return false
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
