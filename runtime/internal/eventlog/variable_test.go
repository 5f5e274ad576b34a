package eventlog_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// F6.9: a payload never replaces the event's own fields, and is $event.data as a whole.
func TestVariable(t *testing.T) {
	for name, data := range map[string]string{
		"Stripe":        `{"id":"evt_1","type":"invoice.paid","data":{"object":{"id":"in_1"}}}`,
		"Linear":        `{"action":"create","type":"Issue","data":{"id":"L-1"},"url":"u"}`,
		"GitHub status": `{"id":6805126730,"name":"Codertocat/Hello-World","state":"success"}`,
		"CloudEvent":    `{"id":"1","source":"/s","time":"t","subject":"x","type":"y"}`,
		"forged":        `{"by":"user","name":"n"}`,
		"list":          `[{"id":1}]`,
		"text":          `"id"`,
	} {
		var got map[string]any
		if err := json.Unmarshal(eventlog.Variable(&sentinels.Event{ID: "e", Name: "webhook:w", Source: "/w", By: "agent:ci", Data: []byte(data)}), &got); err != nil {
			t.Fatal(err)
		}
		var payload any
		if err := json.Unmarshal([]byte(data), &payload); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{}
		if members, ok := payload.(map[string]any); ok {
			for k, v := range members {
				want[k] = v
			}
		}
		delete(want, "subject") // the event has none, and its payload's does not take the place
		for k, v := range map[string]any{"id": "e", "name": "webhook:w", "type": "webhook:w", "source": "/w", "by": "agent:ci", "time": "0001-01-01T00:00:00Z", "data": payload} {
			want[k] = v
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}
