package host_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// bundleOut is a bundle as programs read it.
type bundleOut struct {
	Format    int
	Sentinels []struct {
		SentinelID string
		Definition json.RawMessage
		Revisions  []struct{ Revision int }
	}
}

// importedOut is what sentinel/import answers.
type importedOut struct {
	Imported []struct {
		SentinelID          string
		Revision, Revisions int
		Change, Note        string
	}
}

// exportAll returns a bundle of everything in a host.
func exportAll(t *testing.T, h *host.Host) json.RawMessage {
	t.Helper()
	var out struct{ Bundle json.RawMessage }
	must(t, h, "sentinel/export", `{"all":true,"history":true}`, &out)
	return out.Bundle
}

// pastOf is everything that sentinel/revisions and sentinel/revision say.
func pastOf(t *testing.T, h *host.Host, id string) []any {
	t.Helper()
	var lines struct{ Revisions []struct{ Revision int } }
	must(t, h, "sentinel/revisions", map[string]any{"sentinelId": id}, &lines)
	var out []any
	for _, l := range lines.Revisions {
		var one map[string]any
		must(t, h, "sentinel/revision", map[string]any{"sentinelId": id, "revision": l.Revision}, &one)
		out = append(out, one)
	}
	return out
}

// inhabited is a host whose sentinel "abc" has a past, and whose "caller" starts
// it.
func inhabited(t *testing.T) *host.Host {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", `{"definition":`+abc+`}`, nil)
	must(t, h, "sentinel/step/remove", `{"sentinelId":"abc","index":3}`, nil)
	must(t, h, "sentinel/delete", `{"sentinelId":"abc","note":"for good"}`, nil)
	must(t, h, "sentinel/rollback", `{"sentinelId":"abc","to":1}`, nil)
	must(t, h, "sentinel/create", `{"definition":{"id":"caller","name":"Caller","steps":[
		{"type":"sentinel","definition":{"$ref":"abc"},"outputTo":"o"},
		{"type":"condition","check":"$o.success && 1 < 2","then":[{"type":"sentinel","definition":{"steps":[{"type":"sentinel","definition":{"$ref":"abc"}}]}}]}]}}`, nil)
	return h
}

// A bundle with history makes another store say the same about a sentinel, and
// a second import changes nothing.
func TestExportImport(t *testing.T) {
	from := inhabited(t)
	raw := exportAll(t, from)
	var b bundleOut
	if err := json.Unmarshal(raw, &b); err != nil || b.Format != 1 || len(b.Sentinels) != 2 || len(b.Sentinels[0].Revisions) != 4 {
		t.Fatalf("the bundle is %s, %v", raw, err)
	}
	ws := t.TempDir()
	pretty, err := json.MarshalIndent(raw, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	write(t, ws, map[string]string{"bundle.json": string(pretty)})
	to := open(t, host.Options{Workspace: ws})
	var done importedOut
	must(t, to, "sentinel/import", `{"file":"bundle.json"}`, &done)
	if len(done.Imported) != 2 || done.Imported[0].Change != "created" || done.Imported[0].Revision != 4 || done.Imported[0].Revisions != 4 {
		t.Errorf("import answered %+v", done)
	}
	for _, id := range []string{"abc", "caller"} {
		if diff := cmp.Diff(pastOf(t, from, id), pastOf(t, to, id)); diff != "" {
			t.Errorf("the past of %s changed on its way:\n%s", id, diff)
		}
	}
	must(t, to, "sentinel/import", map[string]any{"bundle": raw}, &done)
	if done.Imported[0].Change != "unchanged" || done.Imported[1].Change != "unchanged" {
		t.Errorf("the second import answered %+v", done)
	}
	// What is edited here is not lost to a bundle without overwrite.
	must(t, to, "sentinel/step/remove", `{"sentinelId":"abc","index":0}`, nil)
	err = call(t, to, "sentinel/import", map[string]any{"bundle": raw}, nil)
	if abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), "at revision 5") || !strings.Contains(abi.As(err).Hint, "overwrite") {
		t.Errorf("import over an edit: %v", err)
	}
	must(t, to, "sentinel/import", map[string]any{"bundle": raw, "overwrite": true}, &done)
	if one := done.Imported[0]; one.Change != "updated" || one.Revision != 6 || one.Revisions != 1 || !strings.Contains(one.Note, "not imported") {
		t.Errorf("import over an edit answered %+v", one)
	}
}

// A sentinel exports as it did before there were bundles, and a bundle of one
// says that too.
func TestExportOne(t *testing.T) {
	h := inhabited(t)
	var plain, packed map[string]any
	must(t, h, "sentinel/export", `{"sentinelId":"abc"}`, &plain)
	must(t, h, "sentinel/export", `{"sentinelId":"abc","history":true}`, &packed)
	if plain["revision"] != 4.0 || plain["bundle"] != nil || plain["definition"].(map[string]any)["name"] != "abc" {
		t.Errorf("export answered %v", plain)
	}
	for key, value := range plain {
		if diff := cmp.Diff(value, packed[key]); diff != "" {
			t.Errorf("with history %s is another:\n%s", key, diff)
		}
	}
	if b, _ := packed["bundle"].(map[string]any); b["format"] != 1.0 || len(b["sentinels"].([]any)) != 1 {
		t.Errorf("with history it answered %v", packed)
	}
	var run struct{ Run string }
	must(t, h, "sentinel/start", `{"sentinelId":"abc"}`, &run)
	for params, code := range map[string]abi.Code{
		`{}`: abi.BadFields, `{"all":true,"sentinelId":"abc"}`: abi.BadFields, `{"sentinelId":"abd","history":true}`: abi.NotFound,
		`{"sentinelId":"` + run.Run + `","history":true}`: abi.BadFields,
	} {
		if err := call(t, h, "sentinel/export", params, nil); abi.CodeOf(err) != code {
			t.Errorf("%s: %v", params, err)
		}
	}
}

// Under another id a sentinel lives beside the one there, with its past, and
// those that start it follow.
func TestImportRename(t *testing.T) {
	h := inhabited(t)
	raw := exportAll(t, h)
	var done importedOut
	must(t, h, "sentinel/import", map[string]any{"bundle": raw, "rename": map[string]string{"abc": "xyz", "caller": "caller-2"}}, &done)
	if len(done.Imported) != 2 || done.Imported[0].SentinelID != "xyz" || done.Imported[0].Revisions != 4 || done.Imported[1].SentinelID != "caller-2" {
		t.Fatalf("import answered %+v", done)
	}
	var caller struct{ Definition any }
	must(t, h, "sentinel/export", `{"sentinelId":"caller-2"}`, &caller)
	if text := fmt.Sprint(caller.Definition); strings.Contains(text, "abc") || strings.Count(text, "map[$ref:xyz]") != 2 || !strings.Contains(text, "&& 1 < 2") {
		t.Errorf("the one that starts it is %s", text)
	}
	must(t, h, "sentinel/rollback", `{"sentinelId":"xyz","to":2}`, nil)
	must(t, h, "sentinel/import", `{"rename":"single","definition":`+abc+`}`, &done)
	if done.Imported[0].SentinelID != "single" {
		t.Errorf("import of a definition answered %+v", done)
	}
	for params, says := range map[string]string{
		`"rename":"x"`:                               "there are 2 sentinels",
		`"rename":{"missing":"x"}`:                   `sentinel "missing" is not in the bundle`,
		`"rename":{"abc":"A B"}`:                     `want an id such as "a-b"`,
		`"rename":{"abc":"q","caller":"q"}`:          `duplicate sentinel "q"`,
		`"rename":7`:                                 "want an id, or an object",
		`"rename":{"abc":"q"},"definition":{}`:       "want one of file, bundle and definition",
		`"rename":{"abc":"caller"}`:                  `duplicate sentinel "caller"`,
		`"rename":{"abc":"q"},"file":"missing.json"`: "want one of",
	} {
		err := call(t, h, "sentinel/import", `{"bundle":`+string(raw)+`,`+params+`}`, nil)
		if abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", params, err)
		}
	}
}

// A bundle with anything wrong in it changes nothing and says all of it.
func TestImportRefuses(t *testing.T) {
	h := open(t, host.Options{})
	one := func(id, more string) string {
		return `{"sentinelId":"` + id + `","definition":{"id":"` + id + `","name":"n","steps":[{"type":"wait","durationMs":1}]}` + more + `}`
	}
	for name, c := range map[string]struct{ bundle, says string }{
		"newer":         {`{"format":2,"sentinels":[]}`, "the newest known is 1"},
		"no format":     {`{"sentinels":[]}`, "missing or invalid format"},
		"empty":         {`{"format":1,"sentinels":[]}`, "no sentinels in it"},
		"unknown key":   {`{"format":1,"sentinels":[` + one("a", `,"colour":"red"`) + `]}`, "colour"},
		"more":          {`{"format":1,"sentinels":{}}`, "want an array, got an object"},
		"another id":    {`{"format":1,"sentinels":[` + strings.Replace(one("a", ""), `"a"`, `"b"`, 1) + `]}`, `has the id "a"`},
		"twice":         {`{"format":1,"sentinels":[` + one("a", "") + `,` + one("a", "") + `]}`, `duplicate sentinel "a"`},
		"two of three":  {`{"format":1,"sentinels":[` + one("ok", "") + `,` + strings.ReplaceAll(one("a", ""), "wait", "wiat") + `,` + strings.ReplaceAll(one("b", ""), "durationMs", "duration") + `]}`, "2 of 3"},
		"history":       {`{"format":1,"sentinels":[` + one("ok", "") + `,` + one("a", `,"revisions":[{"revision":1,"savedAt":"2026-01-01T00:00:00Z","hash":"x","definition":{}}]`) + `]}`, "does not match its hash"},
		"no definition": {`{"format":1,"sentinels":[{"sentinelId":"a"}]}`, "a"},
	} {
		for _, params := range []map[string]any{{"bundle": json.RawMessage(c.bundle)}, {"bundle": c.bundle}} {
			if err := call(t, h, "sentinel/import", params, nil); abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if err := call(t, h, "sentinel/import", `{"file":"missing.json"}`, nil); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("no file: %v", err)
	}
	var all struct{ Sentinels []any }
	must(t, h, "sentinel/list", `{}`, &all)
	if len(all.Sentinels) != 0 {
		t.Errorf("%v were taken in", all.Sentinels)
	}
}

// tree lists the files below a folder.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			out = append(out, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What a sentinel needs goes with it, and nothing that is there is replaced
// without overwrite.
func TestDeploy(t *testing.T) {
	ws, to := t.TempDir(), t.TempDir()
	echo, err := os.ReadFile("../runtime/internal/wasm/testdata/wat/echo.wasm")
	if err != nil {
		t.Fatal(err)
	}
	child := "// keep me\n{ \"id\": \"child\", \"name\": \"Child\", \"steps\": [ { \"type\": \"wait\", \"durationMs\": 1 } ] }\n"
	write(t, ws, map[string]string{
		".sentinel/plugins/echo.wasm":        string(echo),
		".sentinel/plugins/unused.wasm":      "not wasm",
		".sentinel/recipes/mine.json":        `["tree"]`,
		".sentinel/recipes/unused.json":      `["tree"]`,
		".sentinel/sentinels/child.json":     child,
		".sentinel/sentinels/unrelated.json": `{"name":"unrelated","steps":[{"type":"wait","durationMs":1}]}`,
	})
	h := open(t, host.Options{Workspace: ws, Plugins: filepath.Join(ws, ".sentinel", "plugins")})
	echoes := ""
	for _, p := range h.Runtime().Plugins() {
		if p.Source == "echo.wasm" {
			echoes = string(p.Types[0])
		}
	}
	must(t, h, "sentinel/load", `{}`, nil)
	must(t, h, "sentinel/create", `{"definition":{"id":"top","name":"Top","recipe":"mine","steps":[
		{"type":"loop","count":1,"steps":[{"type":"sentinel","definition":{"steps":[{"type":"`+echoes+`"}]}}]},
		{"type":"condition","check":"1","then":[{"type":"sentinel","definition":{"$ref":"child"}}]},
		{"type":"command","command":"sentinel/start","params":{"sentinelId":"top"}},
		{"type":"sentinel","definition":{"$ref":"missing"}}]}}`, nil)
	var out struct {
		Files          []struct{ File, Kind, Change string }
		Missing, Notes []string
	}
	must(t, h, "sentinel/deploy", map[string]any{"sentinelId": "top", "to": to}, &out)
	want := []string{".sentinel/plugins/echo.wasm", ".sentinel/recipes/mine.json", ".sentinel/sentinels/child.json", ".sentinel/sentinels/top.json"}
	if got := tree(t, to); !slices.Equal(got, want) {
		t.Fatalf("there are %q", got)
	}
	if len(out.Files) != 4 || out.Files[3].File != want[3] || out.Files[3].Change != "created" || !slices.Equal(out.Missing, []string{"missing"}) {
		t.Errorf("deploy answered %+v", out)
	}
	if got, err := os.ReadFile(filepath.Join(to, want[2])); err != nil || string(got) != child {
		t.Errorf("the child is %s, %v", got, err)
	}

	// The other project can run it.
	other := open(t, host.Options{Workspace: to, Plugins: filepath.Join(to, ".sentinel", "plugins")})
	var loaded struct{ Loaded, Problems []any }
	must(t, other, "sentinel/load", `{}`, &loaded)
	if len(loaded.Loaded) != 2 || len(loaded.Problems) != 0 {
		t.Errorf("load there answered %+v", loaded)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}

	// Again it is nothing to do; another spelling is the same, another content is not.
	write(t, to, map[string]string{".sentinel/sentinels/child.json": `{"name":"Child","id":"child","steps":[{"durationMs":1,"type":"wait"}]}`})
	must(t, h, "sentinel/deploy", map[string]any{"sentinelId": "top", "to": to}, &out)
	for _, f := range out.Files {
		if f.Change != "unchanged" {
			t.Errorf("the second time %s was %s", f.File, f.Change)
		}
	}
	if err := os.Rename(filepath.Join(to, want[2]), filepath.Join(to, ".sentinel/sentinels/other-name.json")); err != nil {
		t.Fatal(err)
	}
	write(t, to, map[string]string{want[1]: `["git"]`, ".sentinel/sentinels/other-name.json": `{"name":"Child","id":"child","steps":[]}`})
	err = call(t, h, "sentinel/deploy", map[string]any{"sentinelId": "top", "to": to}, nil)
	if abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), "mine.json, .sentinel/sentinels/other-name.json") {
		t.Errorf("over other files: %v", err)
	}
	must(t, h, "sentinel/deploy", map[string]any{"sentinelId": "top", "to": to, "force": true}, &out)
	if got, _ := os.ReadFile(filepath.Join(to, ".sentinel/sentinels/other-name.json")); string(got) != child {
		t.Errorf("the child is %s", got)
	}
	if got := tree(t, filepath.Join(to, ".sentinel", "sentinels")); !slices.Equal(got, []string{"other-name.json", "top.json"}) {
		t.Errorf("there are %q", got)
	}
}

// A project that has the specification's folder and not ours gets it there, and
// no link leads out of a project.
func TestDeployPlaces(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", `{"definition":{"id":"one","name":"One","workspace":"/srv/x","steps":[{"type":"wait","durationMs":1}]}}`, nil)
	to, elsewhere := t.TempDir(), t.TempDir()
	if err := os.MkdirAll(filepath.Join(to, ".continuum", "sentinels"), 0o755); err != nil {
		t.Fatal(err)
	}
	var out struct {
		To    string
		Notes []string
	}
	must(t, h, "sentinel/deploy", map[string]any{"sentinelId": "one", "to": to}, &out)
	if got := tree(t, to); !slices.Equal(got, []string{".continuum/sentinels/one.json"}) || out.To != to || len(out.Notes) != 1 {
		t.Errorf("there are %q, and %+v", got, out)
	}
	ws := open(t, host.Options{Workspace: to})
	var loaded struct{ Loaded []struct{ SentinelID string } }
	must(t, ws, "sentinel/load", `{}`, &loaded)
	if len(loaded.Loaded) != 1 || loaded.Loaded[0].SentinelID != "one" {
		t.Errorf("load there answered %+v", loaded)
	}
	led := t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(led, ".sentinel")); err != nil {
		t.Fatal(err)
	}
	if err := call(t, h, "sentinel/deploy", map[string]any{"sentinelId": "one", "to": led}, nil); err == nil {
		t.Error("a link out of the project was followed")
	}
	if got := tree(t, elsewhere); len(got) != 0 {
		t.Errorf("%q are elsewhere", got)
	}
	for params, code := range map[string]abi.Code{
		`{"sentinelId":"one","to":"nowhere"}`: abi.NotFound, `{"sentinelId":"two","to":"."}`: abi.NotFound,
	} {
		if err := call(t, h, "sentinel/deploy", params, nil); abi.CodeOf(err) != code {
			t.Errorf("%s: %v", params, err)
		}
	}
}

// Both folders of a project are loaded; of two files for one sentinel the one
// in our own folder counts, each time.
func TestLoadProject(t *testing.T) {
	ws := t.TempDir()
	write(t, ws, map[string]string{
		".sentinel/sentinels/a.json":  `{"id":"a","name":"ours","steps":[{"type":"wait","durationMs":1}]}`,
		".continuum/sentinels/a.json": `{"id":"a","name":"theirs","steps":[{"type":"wait","durationMs":2}]}`,
		".continuum/sentinels/b.json": `{"id":"b","name":"b","steps":[{"type":"wait","durationMs":2}]}`,
		".continuum/sentinels/c.json": `{`,
	})
	h := open(t, host.Options{Workspace: ws})
	for range 2 {
		var out struct {
			Loaded []struct {
				Name     string
				Revision int
			}
			Problems []struct{ File, Problem string }
		}
		must(t, h, "sentinel/load", `{}`, &out)
		if len(out.Loaded) != 2 || out.Loaded[0].Name != "ours" || out.Loaded[0].Revision != 1 || out.Loaded[1].Name != "b" {
			t.Errorf("load answered %+v", out)
		}
		if len(out.Problems) != 2 || !strings.Contains(out.Problems[0].Problem, "already") || !strings.Contains(out.Problems[1].Problem, "c.json:1:2") {
			t.Errorf("problems are %+v", out.Problems)
		}
	}
}

// The bundle names the plugins that its definitions need. An import reports those that
// are missing here or another version, and names them beside an unknown step type.
func TestImportReportsPlugins(t *testing.T) {
	h := open(t, host.Options{})
	bundle := func(step, plugins string) map[string]any {
		return map[string]any{"bundle": `{"format":1,"plugins":[` + plugins + `],"sentinels":[{"sentinelId":"a","definition":{"id":"a","name":"a","steps":[` + step + `]}}]}`}
	}
	const (
		wait    = `{"type":"wait","durationMs":1}`
		missing = `{"name":"slack","version":"1.2","digest":"0123456789abcdef0123456789abcdef"}`
		builtin = `{"name":"builtin","digest":"0123456789abcdef"}`
	)
	var out struct {
		Imported []struct{ SentinelID string }
		Notes    []string
	}
	must(t, h, "sentinel/import", bundle(wait, ""), &out)
	if len(out.Imported) != 1 || len(out.Notes) != 0 {
		t.Errorf("without plugins: %+v", out)
	}
	must(t, h, "sentinel/import", bundle(wait, missing+","+builtin), &out)
	if len(out.Notes) != 2 || !strings.Contains(out.Notes[0], `plugin "slack" is not loaded here: the bundle was exported with 1.2 (sha256 0123456789ab)`) ||
		!strings.Contains(out.Notes[1], `plugin "builtin" is another version here`) {
		t.Errorf("notes: %q", out.Notes)
	}
	err := call(t, h, "sentinel/import", bundle(`{"type":"slack_message"}`, missing), nil)
	if e := abi.As(err); e == nil || e.Code != abi.BadFields || !strings.Contains(e.Message, "slack_message") || !strings.Contains(e.Hint, `plugin "slack" is not loaded here`) {
		t.Errorf("unknown step type: %+v", e)
	}
}
