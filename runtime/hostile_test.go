package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/abitest"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// slowHere are hostile guests that need the small limits which the kit gives
// them as a host; in a run, with those of a run, they would take minutes.
var slowHere = []string{"recursion", "recursion_indirect", "blocks_small", "flood_log", "flood_kernel_log"}

// allows grants a plugin all that it asks for: what a hostile one does with
// it is the engine's to bear.
type allows struct{}

func (allows) Grant(_ context.Context, p plugin.Info) (plugin.Grant, error) {
	return plugin.Grant{Allow: p.Permissions}, nil
}

// TestHostileSteps: a hostile guest in a run is a step that failed, with a code
// and a sentence, and the next run is none the worse.
func TestHostileSteps(t *testing.T) {
	if testing.Short() {
		t.Skip("a hundred hostile guests take half a minute: test without -short")
	}
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{Grants: allows{}})
	for _, g := range abitest.Hostile() {
		if g.At != abitest.AtRun || slices.Contains(slowHere, g.Name) || strings.HasPrefix(g.Name, "custom_") {
			continue // the custom ones are the guest simd with sections added
		}
		if g.Name == "bad_requests" {
			g.Code = abi.Timeout // it also asks for executions, and those of the test never end
		}
		t.Run(g.Name, func(t *testing.T) {
			p := plugin.Source{Name: g.Name + ".wasm", Wasm: func() ([]byte, error) { return g.Module(), nil }}
			if _, err := rt.LoadPlugin(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			def := decode(t, rt, fmt.Sprintf(`{"name":"hostile","loop":{"type":"once"},"steps":[{"type":%q,"outputTo":"out","timeoutMs":700}]}`, g.Name))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			id, err := rt.Start(ctx, def, runtime.StartOptions{})
			if err != nil {
				t.Fatal(err)
			}
			res, err := rt.Wait(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			endedAs(t, g, res)
		})
	}
}

// endedAs compares the end of a run with what the kit says of its guest.
func endedAs(t *testing.T, g abitest.HostileGuest, res runtime.Result) {
	t.Helper()
	switch {
	case g.Code == "either":
	case g.Code == "":
		if res.Status != sentinels.StatusCompleted {
			t.Errorf("the run of a guest that does no harm ended %s: %v", res.Status, res.Error)
		}
	case res.Status != sentinels.StatusFailed || res.Error == nil:
		t.Errorf("the run ended %s: %v, want a step that failed", res.Status, res.Error)
	case g.Code != "any" && res.Error.Code != g.Code, res.Error.Code == abi.Internal, res.Error.Message == "":
		text, _ := json.Marshal(res.Error)
		t.Errorf("the step failed with %s, want code %s", text, g.Code)
	}
}
