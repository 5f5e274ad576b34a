package execution

import (
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
)

// Lookup implements [step.State]. It resolves reserved names first, then variables;
// inputs are variables too.
func (r *liveRun) Lookup(sc step.Scope, retry json.RawMessage) reference.Lookup {
	return func(name string) (json.RawMessage, bool) {
		switch name {
		case "event":
			r.mu.Lock()
			e := r.folded.Event
			r.mu.Unlock()
			if e == nil {
				return json.RawMessage("null"), true
			}
			return eventlog.Variable(e), true
		case "inputs":
			in, err := r.ex.svc.Values.Load(r.begin.Inputs)
			if err != nil || in == nil {
				return json.RawMessage("{}"), true
			}
			return in, true
		case "iteration":
			b, _ := json.Marshal(r.Iteration())
			return b, true
		case "run":
			b, _ := json.Marshal(map[string]any{
				"id": r.id, "sentinel": r.begin.Sentinel, "iteration": r.Iteration(), "workspace": r.begin.Workspace,
			})
			return b, true
		case "last":
			v := sc.Last()
			if v == nil {
				v = json.RawMessage("null")
			}
			return v, true
		case "retry":
			if retry == nil {
				return json.RawMessage("null"), true
			}
			return retry, true
		case "ragContext":
			if v, ok := sc.Get(name); ok { // a step has set it, such as one of a recipe
				return v, true
			}
			rag := r.RAGContext()
			if rag == nil {
				return nil, false
			}
			return rag, true
		}
		return sc.Get(name)
	}
}
