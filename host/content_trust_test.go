package host_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/host/internal/trust/content"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// trustAll trusts what came with the folder of a project, its store too.
func trustAll(t *testing.T, ws string, getenv func(string) string) {
	t.Helper()
	settings, err := config.Load(config.Options{Getenv: getenv})
	if err != nil {
		t.Fatal(err)
	}
	folder := host.Content(filepath.Join(ws, ".sentinel"), ws, settings, getenv)
	items, err := folder.Pending(filepath.Join(ws, ".sentinel", "state"))
	for i := range items {
		items[i].Take = items[i].Kind == content.State
	}
	if err == nil {
		err = folder.Approve(items)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestAnotherStore: a store that takes the place of the own one, without the file beside it that has the
// identity of the folder, is not used until it is trusted.
func TestAnotherStore(t *testing.T) {
	ws, configuration := t.TempDir(), t.TempDir()
	start := func(workspace string, options host.Options) (*host.Host, error) {
		options.Workspace, options.CacheDir = workspace, compiled()
		return host.Open(t.Context(), options)
	}
	ask := host.Options{AskTrust: true, Getenv: func(name string) string {
		if name == "XDG_CONFIG_HOME" {
			return configuration
		}
		return ""
	}}
	elsewhere := t.TempDir()
	for range 2 { // made, and opened again
		h, err := start(ws, ask)
		if err == nil {
			err = h.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	h, err := start(elsewhere, host.Options{})
	if err == nil {
		err = h.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(".sentinel", "state", "store.db")
	text, err := os.ReadFile(filepath.Join(elsewhere, store))
	if err == nil {
		err = os.WriteFile(filepath.Join(ws, store), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"another one", "came with the folder"} {
		h, err := start(ws, ask)
		if err == nil {
			t.Fatal(errors.Join(errors.New("the store of another folder was opened"), h.Close()))
		}
		if !errors.Is(err, content.ErrUntrusted) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	trustAll(t, ws, ask.Getenv)
	if h, err = start(ws, ask); err == nil {
		err = h.Close()
	}
	if err != nil {
		t.Errorf("trusted: %v", err)
	}
}

// TestRunsOfATrustedStoreArePaused: no run that came with a store goes on before a person resumes it, also if its journal
// says that it has ended: the question of trust shows definitions, not the values that a run has.
func TestRunsOfATrustedStoreArePaused(t *testing.T) {
	theirs, ws, configuration := t.TempDir(), t.TempDir(), t.TempDir()
	start := func(workspace string, options host.Options) *host.Host {
		t.Helper()
		options.Workspace, options.CacheDir = workspace, compiled()
		h, err := host.Open(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	h := start(theirs, host.Options{})
	must(t, h, "sentinel/create", `{"definition": {"id": "child", "name": "child", "steps": [{"type": "wait", "event": "never"}]}}`, nil)
	must(t, h, "sentinel/create", `{"definition": {"id": "x", "name": "x", "inputs": {"what": {"default": "true"}}, "steps": [{"type": "sentinel", "definition": {"$ref": "child"}}, {"type": "shell", "command": "$what"}]}}`, nil)
	var r struct{ Run sentinels.RunID }
	must(t, h, "sentinel/start", `{"sentinelId": "x", "inputs": {"what": "touch executed"}}`, &r)
	for t.Context().Err() == nil {
		all, err := h.Runtime().Runs(runtime.RunFilter{Root: r.Run})
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 2 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(ws, ".sentinel"), os.DirFS(filepath.Join(theirs, ".sentinel"))); err != nil {
		t.Fatal(err)
	}
	ask := host.Options{AskTrust: true, Getenv: func(name string) string {
		if name == "XDG_CONFIG_HOME" {
			return configuration
		}
		return ""
	}}
	trustAll(t, ws, ask.Getenv)
	for range 2 { // the second start is as any other
		h = start(ws, ask)
		if _, err := h.Runtime().ResumeAll(t.Context(), runtime.ResumeOptions{}); err != nil {
			t.Fatal(err)
		}
		all, err := h.Runtime().Runs(runtime.RunFilter{Root: r.Run})
		if err != nil || len(all) != 2 {
			t.Fatalf("%+v %v", all, err)
		}
		for _, one := range all {
			if one.Status != sentinels.StatusPaused || one.Reason != "by sentinel trust" {
				t.Errorf("run %s of %s: %s, %s", one.ID, one.Sentinel, one.Status, one.Reason)
			}
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
	h = start(ws, ask)
	defer h.Close()
	if _, err := held(t, h, ws, "sentinel/resume", map[string]any{"run": r.Run}); abi.CodeOf(err) != abi.Denied {
		t.Errorf("resumed by an agent: %v", err)
	}
	must(t, h, "sentinel/resume", map[string]any{"run": r.Run}, nil)
	must(t, h, "events/emit", `{"event": "never"}`, nil)
	if res, err := h.Runtime().Wait(t.Context(), r.Run); err != nil || res.Status != sentinels.StatusCompleted {
		t.Errorf("resumed: %+v %v", res, err)
	}
}

// TestEnvironmentFileOfACommit: a step gets no variables of a file that a commit brought until the user
// trusts it, and those of a file of the user's own without a question.
func TestEnvironmentFileOfACommit(t *testing.T) {
	git := gitexec.LookPath()
	if git == "" {
		t.Skip("git is not installed")
	}
	ws, configuration := t.TempDir(), t.TempDir()
	for file, text := range map[string]string{".env": "MODE=theirs\n", ".env.local": "MODE=own\n"} {
		if err := os.WriteFile(filepath.Join(ws, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", ".env"}} {
		cmd := exec.Command(git, args...)
		cmd.Dir = ws
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	h := open(t, host.Options{Workspace: ws, AskTrust: true, Getenv: func(name string) string {
		if name == "XDG_CONFIG_HOME" {
			return configuration
		}
		return ""
	}})
	mode := func(file string) (string, error) {
		res := run(t, h, `{"name": "a", "envFiles": ["`+file+`"], "steps": [{"type": "shell", "command": "echo $MODE", "outputTo": "out"}]}`, ws)
		var out struct{ Text string }
		_ = json.Unmarshal(res.Variables["out"], &out)
		if res.Error != nil {
			return "", errors.New(res.Error.Message)
		}
		return out.Text, nil
	}
	if got, err := mode(".env"); err == nil || !strings.Contains(err.Error(), "is not trusted") {
		t.Errorf("tracked by git: %q, %v", got, err)
	}
	if got, err := mode(".env.local"); err != nil || got != "own" {
		t.Errorf("the user's own: %q, %v", got, err)
	}
	folder := h.Trust().Content()
	items, err := folder.Pending()
	if err != nil || len(items) != 1 || items[0].Path != filepath.Join(ws, ".env") {
		t.Fatalf("waits: %+v, %v", items, err)
	}
	if err := folder.Approve(items); err != nil {
		t.Fatal(err)
	}
	if got, err := mode(".env"); err != nil || got != "theirs" {
		t.Errorf("trusted: %q, %v", got, err)
	}
}
