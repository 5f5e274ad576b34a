package run

import (
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
)

// TestKindHasItsFolder: what is allowed always in one folder is not allowed in another.
func TestKindHasItsFolder(t *testing.T) {
	for asked, want := range map[string]string{
		"Allow git status? Approved, it may be executed with other options and files until this step ends.":               "git status",
		"Allow git status (in x/y-1)? Approved, it may be executed with other options and files until this step ends.":    "git status (in x/y-1)",
		"Allow git status (in x) (in y)? Approved, it may be executed with other options and files until this step ends.": "",
		"Allow git status (in x\ny)? Approved, it may be executed with other options and files until this step ends.":     "",
		"Allow this line? It is asked about each other one.":                                                              "",
	} {
		k, ok := (&always{}).kind(runtime.PendingDecision{Kind: runtime.DecisionApproval, Prompt: asked + "\n$ git status"})
		if ok != (want != "") || k.name != want {
			t.Errorf("%q: %q, %v", asked, k.name, ok)
		}
	}
}
