package standard_test

import (
	"encoding/json"
	"os"
	"strings"
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
	for _, kind := range set.Formats() {
		name := kind.Name
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

// TestT1Table compares the table of clause T1 with what the kinds say of
// themselves: types, aliases, and the key that the format requires.
func TestT1Table(t *testing.T) {
	page, err := os.ReadFile("../TRIGGERS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## T1 Kinds\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")[2:] // behind the heading
	kinds := standard.Set().Formats()
	if len(rows) != len(kinds) {
		t.Fatalf("%d rows for %d kinds", len(rows), len(kinds))
	}
	for i, kind := range kinds {
		cells := strings.Split(rows[i], "|")
		if want := " `" + strings.Join(append([]string{kind.Name}, kind.Aliases...), "`, `") + "` "; cells[1] != want {
			t.Errorf("row %d has the types %s, want %s", i+1, cells[1], want)
		}
		if kind.Field != "" && cells[3] != " `"+string(kind.Field)+"` " {
			t.Errorf("kind %q needs %s, want %q", kind.Name, cells[3], kind.Field)
		}
		if kind.Fires == "" || !strings.HasPrefix(strings.TrimSpace(cells[2]), kind.Fires) {
			t.Errorf("kind %q fires %s, want %q", kind.Name, cells[2], kind.Fires)
		}
	}
}

// TestDetail covers what listings say that a trigger waits for.
func TestDetail(t *testing.T) {
	set := standard.Set()
	for _, tt := range []struct {
		trigger sentinels.Trigger
		want    string
	}{
		{sentinels.Trigger{Type: "manual"}, ""},
		{sentinels.Trigger{Type: "schedule", CronExpression: "@daily"}, "@daily"},
		{sentinels.Trigger{Type: "event", Event: "git:*"}, "git:*"},
		{sentinels.Trigger{Type: "file", Options: json.RawMessage(`{"paths":["a/**","b"]}`)}, "a/** b"},
		{sentinels.Trigger{Type: "file", Options: json.RawMessage(`{"paths":7}`)}, ""},
		{sentinels.Trigger{Type: "webhook", Options: json.RawMessage(`{"event":"hook"}`)}, ""},
		{sentinels.Trigger{Type: "other", Event: "x"}, ""},
	} {
		if got := set.Detail(tt.trigger); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.trigger, got, tt.want)
		}
	}
}
