package host_test

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

func TestMain(m *testing.M) {
	runtime.ServeChild()
	code := m.Run()
	_ = os.RemoveAll(compiled())
	os.Exit(code)
}

// open opens a host and closes it at the end of the test. All hosts of the process share
// the folder of compiled plugins: tests with a home of their own would compile the built-in
// step types again, which takes two seconds. TestCacheDir tests the default folder.
func open(t testing.TB, opt host.Options) *host.Host {
	t.Helper()
	opt.CacheDir = cmp.Or(opt.CacheDir, compiled())
	if opt.Workspace == "" {
		opt.Workspace = t.TempDir()
	}
	h, err := host.Open(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// serveAPI serves an API as the program does, so that the process of a client is looked up once for each
// connection: for each request it takes most of the time of a test with thousands of them.
func serveAPI(t testing.TB, a *api.API) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(a.Handler())
	srv.Config.ConnContext = api.ConnContext
	srv.Start()
	t.Cleanup(srv.Close)
	return srv
}

// inShort leaves only the named cases in the short form. The part `long` of .ci/run has all of them.
func inShort[C any](t *testing.T, cases map[string]C, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, ok := cases[name]; !ok {
			t.Fatalf("no case %q", name)
		}
	}
	if testing.Short() {
		maps.DeleteFunc(cases, func(name string, _ C) bool { return !slices.Contains(names, name) })
	}
}

func run(t *testing.T, h *host.Host, src, workspace string) runtime.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	def, problems := h.Runtime().Decode([]byte(src), "test.json")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	id, err := h.Runtime().Start(ctx, def, runtime.StartOptions{Workspace: workspace})
	if err != nil {
		t.Fatal(err)
	}
	res, err := h.Runtime().Wait(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestShellConditionAndFiles(t *testing.T) {
	ws := t.TempDir()
	h := open(t, host.Options{Workspace: ws})
	res := run(t, h, `{"name":"hello","steps":[
		{"type":"shell","command":"echo hi > out.txt; cat out.txt","outputTo":"said"},
		{"type":"condition","check":"$said.exitCode === 0","then":[
			{"type":"command","command":"code/read","params":{"path":"out.txt"},"outputTo":"file"}]}]}`, ws)
	if res.Status != sentinels.StatusCompleted {
		t.Fatalf("%s: %v", res.Status, res.Error)
	}
	if b, err := os.ReadFile(filepath.Join(ws, "out.txt")); err != nil || string(b) != "hi\n" {
		t.Errorf("out.txt = %q, %v", b, err)
	}
	t.Logf("%s", res.Variables["file"])
}

// TestProcessesCountAsMemory ends a run whose process grows over maxMemoryMb.
func TestProcessesCountAsMemory(t *testing.T) {
	if _, err := os.Stat("/proc/self/statm"); err != nil {
		t.Skip("memory of processes is read from /proc, which is not here")
	}
	ws := t.TempDir()
	h := open(t, host.Options{Workspace: ws})
	res := run(t, h, `{"name":"hog","safety":{"maxMemoryMb":40},"steps":[
		{"type":"shell","command":"x=$(head -c 100000000 /dev/zero | tr '\\0' a); sleep 50; echo ${#x}"}]}`, ws)
	if res.Status != sentinels.StatusFailed || res.Reason != "maxMemoryMb" || res.Error == nil || res.Error.Hint != `raise safety.maxMemoryMb of "hog"` {
		t.Errorf("status %s, reason %q, error %+v; want failed at maxMemoryMb, with a hint", res.Status, res.Reason, res.Error)
	}
}

// TestModelsReadSecretFilesOnlyWhenConfigured goes from the setting to the file.
func TestModelsReadSecretFilesOnlyWhenConfigured(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".env"), []byte("A=needle\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for setting, want := range map[string]abi.Code{"": abi.Denied, ".env.*": abi.Denied, "x,.env": ""} {
		h := open(t, host.Options{Workspace: dir, State: t.TempDir(), Set: map[string]string{"models.secretFiles": setting}})
		for _, call := range []command.Call{
			{Command: "code/read", Params: json.RawMessage(`{"path":".env"}`)},
			{Command: "rag/build", Params: json.RawMessage(`{"sources":["file:.env"]}`)},
		} {
			call.By = command.ByModel
			out, err := h.CallAs(t.Context(), &call)
			read := strings.Contains(string(out), "needle")
			if read != (want == "") || call.Command == "code/read" && abi.CodeOf(err) != want {
				t.Errorf("%s with the setting %q: %s, %v", call.Command, setting, out, err)
			}
		}
	}
}
