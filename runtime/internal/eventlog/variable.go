package eventlog

import (
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Variable returns $event for an event: the payload's own fields at the top, so that
// $event.path works, and the record's attributes where the payload has none.
func Variable(e *sentinels.Event) json.RawMessage {
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
	if e.Subject != "" {
		put("subject", e.Subject)
	}
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
