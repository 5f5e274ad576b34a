package sentinels_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestTriggerKinds: the kinds decide which names a type has and which key the
// format reads. Without kinds every type is accepted and all its keys are options.
func TestTriggerKinds(t *testing.T) {
	order := []sentinels.TriggerKind{{Name: "order", Aliases: []string{"sale"}, Field: sentinels.TriggerEvent, Fires: "for every order"}}
	for _, tt := range []struct {
		name, trigger string
		kinds         []sentinels.TriggerKind
		want          sentinels.Trigger
		problem       string
	}{
		{"name", `{"type":"order","event":"a:*"}`, order, sentinels.Trigger{Type: "order", Event: "a:*"}, ""},
		{"alias", `{"type":"sale","event":"a:*"}`, order, sentinels.Trigger{Type: "order", Event: "a:*"}, ""},
		{"key of another kind", `{"type":"order","event":"a","cronExpression":7}`, order, sentinels.Trigger{Type: "order", Event: "a", Options: json.RawMessage(`{"cronExpression":7}`)}, ""},
		{"missing key", `{"type":"sale"}`, order, sentinels.Trigger{}, `a trigger of type "order" needs "event"`},
		{"unknown type", `{"type":"event","event":"a"}`, order, sentinels.Trigger{}, `unknown value "event"`},
		{"missing type", `{"event":"a"}`, order, sentinels.Trigger{}, "type is missing"},
		{"any type", `{"type":"event","event":"a","n":1}`, nil, sentinels.Trigger{Type: "event", Options: json.RawMessage(`{"event":"a","n":1}`)}, ""},
		{"no type", `{"event":"a"}`, nil, sentinels.Trigger{}, "type is missing"},
		{"empty type", `{"type":""}`, nil, sentinels.Trigger{}, "trigger.type"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			src := `{"name":"a","steps":[],"trigger":` + tt.trigger + `}`
			def, problems := sentinels.Decode([]byte(src), sentinels.DecodeOptions{Triggers: tt.kinds})
			if tt.problem != "" {
				if len(problems) == 0 || !strings.Contains(problems.Error(), tt.problem) {
					t.Fatalf("problems %v, want %q", problems, tt.problem)
				}
				return
			}
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			if diff := cmp.Diff(tt.want, def.Triggers[0]); diff != "" {
				t.Error(diff)
			}
		})
	}
}
