package eventlog

import (
	"encoding/json"
	"slices"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Variable returns $event for an event. The event's own fields are always the
// event's, and $event.data is its whole payload. The members of an object in data
// are members of $event too, so that $event.path works, except those whose name is
// one of [sentinels.EventFields]: a sender could otherwise replace the name, or for whom the
// event was emitted, that a filter checks.
func Variable(e *sentinels.Event) json.RawMessage {
	fields := map[string]json.RawMessage{}
	var data map[string]json.RawMessage
	if json.Unmarshal(e.Data, &data) == nil {
		own := sentinels.EventFields()
		for name, value := range data {
			if !slices.Contains(own, name) {
				fields[name] = value
			}
		}
	}
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
	if e.By != "" {
		put("by", e.By)
	}
	if e.Subject != "" {
		put("subject", e.Subject)
	}
	if e.Data != nil {
		fields["data"] = e.Data
	}
	if len(e.Batch) > 0 {
		batch := make([]json.RawMessage, len(e.Batch))
		for i, b := range e.Batch {
			batch[i] = Variable(&sentinels.Event{ID: b.ID, Name: b.Name, Source: b.Source, Subject: b.Subject, Time: b.Time, Data: b.Data, By: b.By})
		}
		put("batch", batch)
	}
	b, err := json.Marshal(fields)
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}
