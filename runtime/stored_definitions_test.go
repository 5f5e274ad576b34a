package runtime_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestStoredDefinitions: what a closed store would execute is listed: newest revisions, and the definitions
// of runs that have not ended, also large ones, which are beside the store. Runs that have ended add none.
func TestStoredDefinitions(t *testing.T) {
	dir := t.TempDir()
	cache, err := builtins()
	if err != nil {
		t.Fatal(err)
	}
	opt := scriptOptions(cache)
	opt.Dir = dir
	rt, err := runtime.Open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	decode := func(src string) *sentinels.Definition {
		t.Helper()
		def, problems := rt.Decode([]byte(src), "test.json")
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return def
	}
	const wait = `{"type":"wait","durationMs":3600000}`
	large := strings.Repeat("x", 200_000)
	if _, err := rt.Save(within(t), decode(`{"id":"kept","steps":[`+wait+`]}`), 0); err != nil {
		t.Fatal(err)
	}
	var started []sentinels.RunID
	for _, src := range []string{
		`{"id":"small","steps":[` + wait + `]}`,
		`{"id":"large","variables":{"v":"` + large + `"},"steps":[` + wait + `]}`,
		`{"id":"ended","steps":[{"type":"set","values":{"v":1}}]}`,
	} {
		run, err := rt.Start(within(t), decode(src), runtime.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		started = append(started, run)
	}
	if _, err := rt.Wait(within(t), started[2]); err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Start(within(t), decode(`{"id":"kept","steps":[`+wait+`]}`), runtime.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	rt.Close()
	list, err := runtime.StoredDefinitions(within(t), dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[sentinels.ID]runtime.FoundDefinition{}
	for _, d := range list {
		found[d.ID] = d
	}
	if len(list) != 3 || found["kept"].Run != "" || found["kept"].Revision != 1 || found["small"].Run != started[0] || found["large"].Run != started[1] {
		for _, d := range list {
			t.Errorf("found %s, revision %d, run %q", d.ID, d.Revision, d.Run)
		}
	}
	if !strings.Contains(string(found["large"].Definition), large) {
		t.Error("the definition beside the store is not whole")
	}
	if err := os.RemoveAll(filepath.Join(dir, "blobs")); err != nil {
		t.Fatal(err)
	}
	if _, err := runtime.StoredDefinitions(within(t), dir); err == nil || !strings.Contains(err.Error(), string(started[1])) {
		t.Errorf("a run whose definition cannot be read: %v", err)
	}
}
