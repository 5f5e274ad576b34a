package runtime

import (
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// lookup returns the names that references and conditions of a scope may use:
// the reserved ones, then variables, then inputs as plain variables. retry is
// the value of $retry, nil outside a repeated attempt.
func (r *run) lookup(sc *scope, retry json.RawMessage) sentinels.Lookup {
	return func(name string) (json.RawMessage, bool) {
		switch name {
		case "event":
			r.mu.Lock()
			e := r.event
			r.mu.Unlock()
			if e == nil {
				return json.RawMessage("null"), true
			}
			return eventValue(e), true
		case "inputs":
			in, err := r.rt.load(r.begin.Inputs)
			if err != nil || in == nil {
				return json.RawMessage("{}"), true
			}
			return in, true
		case "iteration":
			b, _ := json.Marshal(r.passes())
			return b, true
		case "run":
			b, _ := json.Marshal(map[string]any{
				"id": r.id, "sentinel": r.begin.Sentinel, "iteration": r.passes(), "workspace": r.begin.Workspace,
			})
			return b, true
		case "last":
			v := sc.lastValue()
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
			r.mu.Lock()
			rag := r.ragContext
			r.mu.Unlock()
			if rag == nil {
				return nil, false
			}
			return rag, true
		}
		return sc.get(name)
	}
}

// eventValue is $event: the payload's own fields at the top, so that
// $event.path works, and the record's attributes where the payload has none.
func eventValue(e *sentinels.Event) json.RawMessage {
	fields := map[string]json.RawMessage{}
	put := func(name string, v any) {
		b, err := json.Marshal(v)
		if err == nil {
			fields[name] = b
		}
	}
	put("id", e.ID)
	put("type", e.Name)
	put("name", e.Name)
	put("source", e.Source)
	put("time", e.Time)
	if e.Data != nil {
		fields["data"] = e.Data
		var data map[string]json.RawMessage
		if json.Unmarshal(e.Data, &data) == nil {
			for k, v := range data {
				fields[k] = v
			}
		}
	}
	b, err := json.Marshal(fields)
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}
