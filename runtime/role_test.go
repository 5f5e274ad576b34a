package runtime_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/abitest"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// allowAll grants plugins all that they ask for.
type allowAll struct{}

func (allowAll) Grant(_ context.Context, p plugin.Info) (plugin.Grant, error) {
	return plugin.Grant{Allow: p.Permissions}, nil
}

// roleHost uses the step types of a module in pure roles.
type roleHost struct{ rt *runtime.Runtime }

func (h roleHost) Evaluate(ctx context.Context, module []byte, as abi.Role, stepType string, fields json.RawMessage) (json.RawMessage, error) {
	if _, err := h.rt.LoadPlugin(ctx, plugin.Source{Name: "role.wasm", Wasm: func() ([]byte, error) { return module, nil }}); err != nil {
		return nil, err
	}
	return h.rt.Evaluate(ctx, as, sentinels.StepType(stepType), fields)
}

// TestPureRoles tests the clauses of ABI.md about pure roles.
func TestPureRoles(t *testing.T) {
	rt, err := runtime.Open(t.Context(), runtime.Options{Grants: allowAll{}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	abitest.TestRoles(t, roleHost{rt})
}
