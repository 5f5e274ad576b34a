package standard_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers/standard"
)

// TestT1Kinds covers the kinds of clause T1: each accepts the common options and
// refuses unknown ones.
func TestT1Kinds(t *testing.T) {
	want := map[string]sentinels.Trigger{
		"manual":    {},
		"immediate": {},
		"schedule":  {CronExpression: "@daily"},
		"event":     {Event: "git:push"},
		"file":      {Options: json.RawMessage(`{"paths":["**/*.go"],`)},
		"webhook":   {Options: json.RawMessage(`{"secretEnv":"HOOK_SECRET",`)},
	}
	set := standard.Set()
	seen := map[string]bool{}
	for _, name := range set.Names() {
		seen[name] = true
		trigger, ok := want[name]
		if !ok {
			t.Errorf("kind %q is not in the format", name)
			continue
		}
		trigger.Type = name
		if len(trigger.Options) == 0 {
			trigger.Options = json.RawMessage(`{`)
		}
		own := trigger.Options
		trigger.Options = append(own[:len(own):len(own)], `"filter":"$event","debounceMs":10,"maxWaitMs":20,"allowConcurrent":true}`...)
		if err := set.Check(trigger); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		trigger.Options = append(own[:len(own):len(own)], `"debouncems":10}`...)
		if err := set.Check(trigger); err == nil {
			t.Errorf("%s: an unknown option was accepted", name)
		}
		trigger.Options = append(own[:len(own):len(own)], `"debounceMs":-1}`...)
		if err := set.Check(trigger); err == nil {
			t.Errorf("%s: a negative debounce was accepted", name)
		}
	}
	all := map[string]bool{}
	for name := range want {
		all[name] = true
	}
	if diff := cmp.Diff(all, seen); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}
