package host_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Spec 002: "Export to JSON: ./jtag data/read --collection=sentinels
// --filter='{"uniqueId":"build-fix"}' > build-fix.json". The file is accepted wherever a
// definition is read, and makes the same sentinel.
func TestExportedTextIsAccepted(t *testing.T) {
	from := open(t, host.Options{})
	must(t, from, "sentinel/create", `{"definition": {"name": "build-fix", "steps": [{"type": "wait", "durationMs": 1}]}}`, nil)
	must(t, from, "sentinel/start", `{"sentinelId": "build-fix"}`, nil)
	var want struct{ Hash string }
	must(t, from, "sentinel/export", `{"sentinelId": "build-fix"}`, &want)
	for show, params := range map[string]string{
		"data/read":       `{"collection": "sentinels", "filter": {"uniqueId": "build-fix"}}`,
		"sentinel/export": `{"sentinelId": "build-fix", "history": true}`,
	} {
		printed, err := from.Call(t.Context(), show, json.RawMessage(params))
		if err != nil {
			t.Fatal(err)
		}
		for name, params := range map[string]string{
			"sentinel/create": `{"file": "build-fix.json"}`,
			"sentinel/load":   `{"path": "build-fix.json"}`,
			"sentinel/import": `{"file": "build-fix.json"}`,
		} {
			ws := t.TempDir()
			if err := os.WriteFile(filepath.Join(ws, "build-fix.json"), printed, 0o600); err != nil {
				t.Fatal(err)
			}
			to := open(t, host.Options{Workspace: ws})
			var valid struct {
				Valid    bool
				Problems []json.RawMessage
			}
			must(t, to, "sentinel/validate", `{"file": "build-fix.json", "strict": true}`, &valid)
			if !valid.Valid || len(valid.Problems) > 0 {
				t.Errorf("validate of what %s prints: %+v", show, valid)
			}
			var got struct{ Hash string }
			must(t, to, name, params, nil)
			must(t, to, "sentinel/export", `{"sentinelId": "build-fix"}`, &got)
			if got != want {
				t.Errorf("%s of what %s prints: hash %v, want %v", name, show, got, want)
			}
		}
	}
}

// Keys of entities of other programs are dropped, and each answer says so.
func TestEditsReportDroppedKeys(t *testing.T) {
	ws := t.TempDir()
	write(t, ws, map[string]string{"ent.json": `{"uniqueId": "ent", "name": "ent", "recipe": null,
		"escalationRules": [], "steps": [{"type": "wait", "durationMs": 1}]}`})
	h := open(t, host.Options{Workspace: ws})
	for name, params := range map[string]string{
		"sentinel/create": `{"file": "ent.json"}`, "sentinel/load": `{"path": "ent.json"}`, "sentinel/import": `{"file": "ent.json"}`, "sentinel/validate": `{"file": "ent.json"}`,
	} {
		out, err := h.Call(t.Context(), name, json.RawMessage(params))
		if err != nil || !strings.Contains(string(out), `"path":"recipe","kind":"warning","message":"is null and is dropped"`) || !strings.Contains(string(out), `"line":2,"column":22,"path":"escalationRules"`) {
			t.Errorf("%s answered %s, %v", name, out, err)
		}
	}
}

// Spec 002: "Runtime (updated when running): lastRunAt?: Date; runCount: number;
// averageDurationMs?: number". They are computed when the entity is read and make no
// revision.
func TestEntityHasStatistics(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", `{"definition": {"name": "counted", "steps": [{"type": "wait", "durationMs": 1}]}}`, nil)
	type doc struct {
		Revision int
		Data     struct {
			RunCount          *int
			LastRunAt         *string
			AverageDurationMs *int
		}
	}
	read := func() doc {
		var out struct{ Document doc }
		must(t, h, "data/read", `{"collection": "sentinels", "id": "counted"}`, &out)
		return out.Document
	}
	if d := read(); d.Data.RunCount == nil || *d.Data.RunCount != 0 || d.Data.LastRunAt != nil || d.Data.AverageDurationMs != nil {
		t.Errorf("before the first run, the entity is %+v", d)
	}
	for n := 1; n <= 2; n++ {
		var run struct{ Run string }
		must(t, h, "sentinel/start", `{"sentinelId": "counted"}`, &run)
		must(t, h, "sentinel/await", fmt.Sprintf(`{"run": %q}`, run.Run), nil)
		if d := read(); *d.Data.RunCount != n || d.Data.LastRunAt == nil || d.Data.AverageDurationMs == nil || d.Revision != 1 {
			t.Errorf("after run %d, the entity is %+v", n, d)
		}
	}
	var list struct{ Items []doc }
	must(t, h, "data/list", `{"collection": "sentinels", "filter": {"runCount": 2}}`, &list)
	if len(list.Items) != 1 {
		t.Errorf("data/list answered %+v", list)
	}
	err := call(t, h, "data/update", `{"collection": "sentinels", "id": "counted", "data": {"runCount": 0}}`, nil)
	if abi.CodeOf(err) != abi.Denied {
		t.Errorf("data/update of a sentinel: %v", err)
	}
}

// Another definition is not lost to a second author of the same name: create refuses it
// with the difference. An equal one is no change.
func TestCreateDoesNotReplace(t *testing.T) {
	h := open(t, host.Options{})
	const first = `{"name": "build", "steps": [{"type": "wait", "durationMs": 1}]}`
	const second = `{"name": "build", "steps": [{"type": "wait", "durationMs": 2}]}`
	revision := func(params string) int {
		t.Helper()
		var out struct{ Revision int }
		must(t, h, "sentinel/create", params, &out)
		return out.Revision
	}
	for range 2 {
		if n := revision(`{"definition": ` + first + `}`); n != 1 {
			t.Errorf("the revision is %d", n)
		}
	}
	err := call(t, h, "sentinel/create", `{"definition": `+second+`}`, nil)
	e := abi.As(err)
	if abi.CodeOf(err) != abi.Conflict || !strings.Contains(e.Message, `"build": another definition is stored, at revision 1`) || !strings.Contains(e.Message, "-      \"durationMs\": 1\n+      \"durationMs\": 2") ||
		!strings.Contains(e.Hint, "--replace") || !strings.Contains(e.Hint, "If-Match") {
		t.Errorf("create of another definition: %v, hint %q", err, e.Hint)
	}
	if err := call(t, h, "sentinel/create", `{"definition": `+second+`, "revision": 2}`, nil); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("create on another revision: %v", err)
	}
	if n := revision(`{"definition": ` + second + `, "revision": 1}`); n != 2 {
		t.Errorf("create on the revision: revision %d", n)
	}
	if n := revision(`{"definition": ` + first + `, "replace": true}`); n != 3 {
		t.Errorf("create with replace: revision %d", n)
	}
	must(t, h, "sentinel/delete", `{"sentinelId": "build"}`, nil)
	if n := revision(`{"definition": ` + second + `}`); n != 5 {
		t.Errorf("create of a deleted one: revision %d", n)
	}
	// A long difference is cut.
	var steps []string
	for i := range 100 {
		steps = append(steps, fmt.Sprintf(`{"type": "wait", "durationMs": %d}`, 1000+i))
	}
	err = call(t, h, "sentinel/create", `{"definition": {"name": "build", "steps": [`+strings.Join(steps, ",")+`]}}`, nil)
	if abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), " lines left out]") || len(err.Error()) > 4000 {
		t.Errorf("create of a long definition: %v", err)
	}
}
