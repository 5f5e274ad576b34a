package host_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// commandKit returns a plugin with a name and one command.
func commandKit(name, stepType, verb string) string {
	return `sentinel.plugin({name: "` + name + `", version: "1", permissions: [{use: "provide", names: ["command"], reason: "r"}], steps: {
		` + stepType + `: {summary: "S.", fields: {type: "object"}, output: {type: "object"}, provides: {as: "command", name: "` + name + `/` + verb + `"}, run: () => ({})}}});`
}

// TestFamiliesAreReserved: the families of all commands of a host are those that no plugin
// can have.
func TestFamiliesAreReserved(t *testing.T) {
	h := open(t, host.Options{})
	for _, c := range h.Commands().List() {
		if family, _, _ := strings.Cut(c.Name, "/"); !command.BuiltIn(family) {
			t.Errorf("the family of %s is not reserved: add it to host/command/family.go", c.Name)
		}
	}
}

// TestPluginCommandNames: a plugin is refused with a command of a family that is part of the
// program, and with one that another plugin has.
func TestPluginCommandNames(t *testing.T) {
	r := openRoles(t, commandKit("kit", "kit_a", "run"), host.Options{})
	must(t, r.Host, "plugin/allow", `{"name":"kit"}`, nil)
	load := func(file, script string) error {
		module := jsPlugin(t, script)
		_, err := r.Runtime().LoadPlugin(t.Context(), plugin.Source{Name: file, Wasm: func() ([]byte, error) { return module, nil }})
		return err
	}
	families := []string{"code", "data", "ticket", "mcp", "sentinel"}
	if testing.Short() { // each is a module to compile; TestFamiliesAreReserved compares the list of all families
		families = families[:1]
	}
	for _, family := range families {
		err := load("family.wasm", commandKit(family, family+"_a", "run"))
		if abi.CodeOf(err) != abi.Denied {
			t.Errorf("family %s: %v", family, err)
		}
	}
	if err := load("verb.wasm", commandKit("rag", "rag_a", "run")); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "part of the program") {
		t.Errorf("family rag: %v", err)
	}
	// Another file with the same name and the same command: the grant is for the other bytes, and
	// once it is allowed, its command is taken.
	err := load("again.wasm", commandKit("kit", "kit_b", "run"))
	must(t, r.Host, "plugin/allow", `{"name":"again.wasm"}`, nil)
	var problem string
	for _, p := range r.Runtime().Plugins() {
		if p.Source == "again.wasm" {
			problem = string(p.State) + ": " + p.Problem
		}
	}
	if err == nil || !strings.Contains(problem, `refused`) || !strings.Contains(problem, `command "kit/run" is already provided by plugin "kit"`) {
		t.Errorf("%v; %s", err, problem)
	}
}

// TestPluginCommandIsListed: a command of a plugin is found by models, in the API's
// description, and by its family in a list of tools.
func TestPluginCommandIsListed(t *testing.T) {
	r := openRoles(t, kit, host.Options{})
	must(t, r.Host, "plugin/allow", `{"name":"kit"}`, nil)
	var found struct{ Tools []struct{ Name string } }
	must(t, r.Host, "search_tools", `{"query":"loudly"}`, &found)
	if len(found.Tools) == 0 || found.Tools[0].Name != "kit/shout" {
		t.Errorf("search_tools: %+v", found)
	}
	a, err := api.New(api.Options{Commands: registryOf{r.Host}, Tokens: anyToken{}})
	if err != nil {
		t.Fatal(err)
	}
	srv := serveAPI(t, a)
	get := caller(t, srv, 200)
	var doc struct{ Paths map[string]any }
	get("GET", "/openapi.json", "", &doc)
	if doc.Paths["/v1/commands/kit/shout"] == nil {
		t.Errorf("openapi.json has no /v1/commands/kit/shout")
	}
	var out struct{ Text string }
	get("POST", "/v1/commands/kit/shout", `{"text":"a"}`, &out, "Idempotency-Key: one")
	get("POST", "/v1/commands/kit/shout", `{"text":"a"}`, &out, "Idempotency-Key: one")
	if out.Text != "A" {
		t.Errorf("by HTTP: %+v", out)
	}
	_, problems := r.Runtime().Decode([]byte(`{"name":"a","steps":[{"type":"llm","prompt":"a","tools":["kit/*","kit/shout","kit/sout","kitt/*"]}]}`), "a.json")
	var hints []string
	for _, p := range problems {
		hints = append(hints, p.Hint)
	}
	if want := []string{`did you mean "kit/shout"?`, `did you mean "kit/*"?`}; !slices.Equal(hints, want) {
		t.Errorf("hints %q, want %q", hints, want)
	}
}

// TestErrorCategoryIsRecorded: after a restart the category of an error is that of the
// journal, although the plugin that decided it is gone.
func TestErrorCategoryIsRecorded(t *testing.T) {
	r := openRoles(t, errorKit("kit", `() => ({category: "context", subcategory: "own"})`), host.Options{})
	must(t, r.Host, "plugin/allow", `{"name":"kit"}`, nil)
	id := r.start(`{"name":"r","steps":[{"type":"shell","command":"echo $retry.category >> category; exit 1","onError":{"retry":{"maxRetries":1,"baseDelayMs":1500}}}]}`)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		info, err := r.Runtime().Status(id)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("no retry: %+v, %v", info, err)
		}
		if len(info.Retries) > 0 {
			break
		}
	}
	must(t, r.Host, "plugin/deny", `{"name":"kit"}`, nil)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	next := open(t, host.Options{Workspace: r.workspace, Getenv: r.getenv, CacheDir: compiled()})
	if _, err := next.Runtime().ResumeAll(t.Context(), runtime.ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	res, err := next.Runtime().Wait(t.Context(), id)
	if err != nil || res.Status != sentinels.StatusFailed {
		t.Fatalf("%s: %v", res.Status, err)
	}
	var out struct{ Content string }
	must(t, next, "code/read", `{"path":"category"}`, &out)
	if lines := strings.Split(strings.TrimSpace(out.Content), "\n"); lines[len(lines)-1] != "context" {
		t.Errorf("$retry.category was %q", out.Content)
	}
}
