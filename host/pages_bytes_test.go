package host_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
)

// TestPagesHaveBytes: a page of a list has at most 8 MiB, however large its entries are, and the pages
// together have every entry once.
func TestPagesHaveBytes(t *testing.T) {
	h := open(t, host.Options{})
	text := strings.Repeat("x", 250_000)
	var want []string
	for i := range 12 {
		id := fmt.Sprintf("big-%02d", i)
		want = append(want, id)
		def, err := json.Marshal(map[string]any{
			"id": id, "name": id, "description": text, "variables": map[string]string{"a": text, "b": text, "c": text},
			"steps": []map[string]any{{"command": "code/shell/execute", "params": map[string]string{"command": "true"}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		// Its author may not call the command, so that a person is asked about the definition.
		call := &command.Call{Command: "sentinel/create", Params: json.RawMessage(`{"definition": ` + string(def) + `}`), By: command.ByModel, Tools: []string{"sentinel/create"}}
		if _, err := h.CallAs(t.Context(), call); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 30 {
		id := fmt.Sprintf("small-%02d", i)
		must(t, h, "sentinel/create", map[string]any{"definition": map[string]any{"id": id, "name": id, "description": text, "steps": []any{}}}, nil)
	}
	pages := func(name, params, after string, ids func(raw json.RawMessage) (list []string, next string)) (all []string, n int) {
		for n = 1; ; n++ {
			raw, err := h.Call(t.Context(), name, json.RawMessage(params))
			if err != nil || len(raw) > 9<<20 {
				t.Fatalf("%s: %d bytes, %v", name, len(raw), err)
			}
			list, next := ids(raw)
			if all = append(all, list...); next == "" {
				return all, n
			}
			params = strings.TrimSuffix(strings.Split(params, `, "after"`)[0], "}") + fmt.Sprintf(`, %q: %q}`, after, next)
		}
	}
	inbox, n := pages("inbox/list", `{"kind": ["definition"]}`, "after", func(raw json.RawMessage) (list []string, next string) {
		var out struct {
			Entries []struct {
				ID    string
				Lines []string
			}
			Next string
		}
		if err := json.Unmarshal(raw, &out); err != nil {
			t.Fatal(err)
		}
		for _, e := range out.Entries {
			if list = append(list, e.ID); len(e.Lines) == 0 {
				t.Errorf("%s: no lines", e.ID)
			}
		}
		return list, out.Next
	})
	if slices.Sort(inbox); n < 2 || !slices.Equal(inbox, want) {
		t.Errorf("inbox/list: %d pages: %v", n, inbox)
	}
	for i := range 30 {
		want = append(want, fmt.Sprintf("small-%02d", i))
	}
	listed, n := pages("sentinel/list", `{"only": "sentinels"}`, "after", func(raw json.RawMessage) (list []string, next string) {
		var out struct {
			Sentinels    []struct{ SentinelID string }
			NextSentinel string
		}
		if err := json.Unmarshal(raw, &out); err != nil {
			t.Fatal(err)
		}
		for _, s := range out.Sentinels {
			list = append(list, s.SentinelID)
		}
		return list, out.NextSentinel
	})
	if n < 2 || !slices.Equal(listed, want) {
		t.Errorf("sentinel/list: %d pages: %v", n, listed)
	}
	var one struct{ Sentinels []struct{ SentinelID string } }
	must(t, h, "sentinel/list", `{"only": "sentinels", "sentinelId": "small-03"}`, &one)
	if len(one.Sentinels) != 1 || one.Sentinels[0].SentinelID != "small-03" {
		t.Errorf("one sentinel: %+v", one)
	}
}
