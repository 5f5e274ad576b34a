package host_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestDocumentsOfAgents: documents, chat messages and memories of an agent have a bound together, and
// those of other agents and of persons are accepted beside them. What an agent deletes is free again.
func TestDocumentsOfAgents(t *testing.T) {
	h := open(t, host.Options{Set: map[string]string{"limits.agentBytes": "20000"}})
	call := func(by command.By, as, name, params string) error {
		_, err := h.CallAs(t.Context(), &command.Call{Command: name, Params: json.RawMessage(params), By: by, As: as})
		return err
	}
	text := strings.Repeat("x", 3000)
	writes := []func(n int) (name, params string){
		func(n int) (string, string) {
			return "data/create", fmt.Sprintf(`{"collection":"c","id":"d%d","data":{"x":%q}}`, n, text)
		},
		func(int) (string, string) {
			return "collaboration/chat/send", fmt.Sprintf(`{"room":"r","message":%q}`, text)
		},
		func(n int) (string, string) {
			return "memory/store", fmt.Sprintf(`{"sentinelId":"s","key":"k%d","text":%q}`, n, text)
		},
	}
	refused := 0
	for n := range 12 {
		name, params := writes[n%3](n)
		switch err := call(command.ByAgent, "ci", name, params); {
		case err == nil && refused == 0 && n < 7:
		case abi.CodeOf(err) == abi.Limit && n > 3 && strings.Contains(err.Error(), "agent:ci has"):
			refused++
		default:
			t.Errorf("%s, write %d of the agent: %v", name, n, err)
		}
	}
	if refused < 3 {
		t.Errorf("%d writes are refused", refused)
	}
	for i, write := range writes {
		name, params := write(100 + i)
		for range 10 {
			if err := call(command.ByUser, "", name, params); err != nil && abi.CodeOf(err) != abi.Conflict {
				t.Errorf("%s of a person: %v", name, err)
			}
		}
		if name, params = write(200 + i); call(command.ByAgent, "other", name, params) != nil {
			t.Errorf("%s of another agent is refused", name)
		}
	}
	if err := call(command.ByAgent, "ci", "data/delete", `{"collection":"c","id":"d0"}`); err != nil {
		t.Fatal(err)
	}
	name, params := writes[0](300)
	if err := call(command.ByAgent, "ci", name, params); err != nil {
		t.Errorf("after a deletion: %v", err)
	}
}
