package cli_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sentinel-runtime/sentinel/host/cli"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/oci/ocitest"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/toolchain"
	"github.com/sentinel-runtime/sentinel/sdk/toolchain/toolchaintest"
)

func TestMain(m *testing.M) {
	runtime.ServeChild()
	testscript.Main(withCompiled{m}, map[string]func(){
		"sentinel": func() { os.Exit(cli.Main(context.Background(), os.Args...)) },
		"http":     func() { os.Exit(request(os.Args[1:])) },
	})
}

// cacheHome is the XDG_CACHE_HOME of tests: compiling the built-in step types takes two seconds
// of two processors. userCacheHome is the variable of the environment of the tests.
var cacheHome, userCacheHome string

// withCompiled runs the tests with the folder cacheHome.
type withCompiled struct{ *testing.M }

func (m withCompiled) Run() int {
	dir, err := os.MkdirTemp("", "compiled-plugins-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	cacheHome, userCacheHome = dir, os.Getenv("XDG_CACHE_HOME")
	if err := os.Setenv("XDG_CACHE_HOME", dir); err != nil {
		panic(err)
	}
	return m.M.Run()
}

// compileOnce compiles the built-in step types, before tests that run in parallel would each do it.
// They are loaded when a definition with one of them is validated.
var compileOnce = sync.OnceValue(func() error {
	if err := os.WriteFile(filepath.Join(cacheHome, "warm.json"), []byte(`{"name":"warm","steps":[{"type":"wait","durationMs":1}]}`), 0o600); err != nil {
		return err
	}
	warm := exec.Command("sentinel", "validate", "warm.json")
	warm.Env = append(os.Environ(), "XDG_CACHE_HOME="+cacheHome)
	warm.Dir = cacheHome
	if out, err := warm.CombinedOutput(); err != nil {
		return fmt.Errorf("compile the built-in plugin: %w\n%s", err, out)
	}
	if code, err := filepath.Glob(filepath.Join(cacheHome, "sentinel", "plugins", "*", "*", "*")); len(code) == 0 || err != nil {
		return fmt.Errorf("validate left no compiled plugin in %s: %v", cacheHome, err)
	}
	return nil
})

// TestScripts runs testdata/script. Each script has a home and a work folder of
// its own; compiled plugins are shared, for they are the same in all.
func TestScripts(t *testing.T) { scripts(t, "testdata/script") }

// TestScriptsAnywhere runs testdata/anywhere: scripts with the same result for every user, in
// every folder and environment. CI runs them once, and those of testdata/script several times.
func TestScriptsAnywhere(t *testing.T) { scripts(t, "testdata/anywhere") }

// TestAuthoring runs testdata/authoring: tasks that an AI solves with the program alone.
// The comment at the top of each script is the task; then come the definition, as it is
// written from `sentinel help` and `sentinel schema`, and the effect that is expected.
// The model of a script is its file model.txt, see scriptedModel.
func TestAuthoring(t *testing.T) { scripts(t, "testdata/authoring") }

// scripts runs the scripts of a folder.
func scripts(t *testing.T, dir string) {
	if err := compileOnce(); err != nil {
		t.Fatal(err)
	}
	compiled := goCache(t)
	model := httptest.NewServer(http.HandlerFunc(answer))
	// Scripts run in parallel, beyond this function's end.
	t.Cleanup(model.Close)
	over := make(chan struct{})
	requests := httptest.NewServer(&requestServer{over: over})
	t.Cleanup(func() { // a script that failed may have left a request open
		close(over)
		requests.Close()
	})
	registry := ocitest.New(false)
	t.Cleanup(registry.Close)
	guests, err := filepath.Abs("../../runtime/internal/wasm/testdata/wat")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("HOME", home)
			env.Setenv("USER", "tester")
			env.Setenv("SENTINEL_TRUST_ROOTS", env.WorkDir) // trust.txtar has the questions
			env.Setenv("XDG_CACHE_HOME", cacheHome)
			env.Setenv("GOCACHE", compiled)
			env.Setenv("GOPROXY", "off")          // a new project builds without a network
			env.Setenv("GOGC", os.Getenv("GOGC")) // see .ci/test
			for name, dir := range map[string]string{"RUSTUP_HOME": ".rustup", "CARGO_HOME": ".cargo"} {
				env.Setenv(name, cmp.Or(os.Getenv(name), filepath.Join(os.Getenv("HOME"), dir))) // where the compiler is
			}
			env.Setenv("MODEL_URL", model.URL+"/v1")
			env.Setenv("REQUESTS", requests.URL)
			env.Setenv("REGISTRY", registry.Host())
			env.Setenv("SMALL_GUESTS", guests)
			if err := scriptedModel(env); err != nil {
				return err
			}
			state := filepath.Join(env.WorkDir, ".sentinel", "state")
			return errors.Join(os.Mkdir(home, 0o700), os.MkdirAll(state, 0o700))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":  code,
			"until": until,
			"jsonl": jsonl,
			"keep":  keep,
			"guest": guest,
		},
		Condition: condition,
	})
}

// condition is [toolchain:LANG]: whether plugins in that language can be built here.
func condition(cond string) (bool, error) {
	name, ok := strings.CutPrefix(cond, "toolchain:")
	if !ok {
		return false, fmt.Errorf("unknown condition %q", cond)
	}
	lang, err := toolchain.Lookup(name)
	if err != nil {
		return false, err
	}
	err = toolchaintest.Probe(lang)
	if err != nil && toolchaintest.Required() {
		return false, err
	}
	return err == nil, nil
}

// answer is a language model that knows one sentence.
func answer(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintln(w, `{"object":"list","data":[{"id":"parrot","object":"model"}]}`)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	const chunk = `{"id":"1","object":"chat.completion.chunk","model":"parrot","choices":[{"index":0,"delta":{"role":"assistant","content":%q},"finish_reason":%s}]}`
	first, second := "Polly wants ", "a cracker"
	body, _ := io.ReadAll(r.Body) // a request that breaks gets the usual answer
	switch {                      // the schemas of templates
	case bytes.Contains(body, []byte("findings")):
		first, second = `{"findings": [{"file": "a.txt", `, `"line": 1, "problem": "a typo"}]}`
	case bytes.Contains(body, []byte("summary")):
		first, second = `{"done": true, `, `"summary": "all of it"}`
	}
	fmt.Fprintf(w, "data: "+chunk+"\n\n", first, "null")
	fmt.Fprintf(w, "data: "+chunk+"\n\n", second, `"stop"`)
	fmt.Fprint(w, `data: {"id":"1","object":"chat.completion.chunk","model":"parrot","choices":[],"usage":{"prompt_tokens":1200,"completion_tokens":34,"total_tokens":1234}}`+"\n\ndata: [DONE]\n")
}

// code N PROGRAM ARGS...: the program ends with exit code N.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N program args...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// until PATTERN PROGRAM ARGS...: run it again and again until what it writes to
// standard output matches.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until pattern program args...")
	}
	want, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	end := time.Now().Add(2 * time.Minute)
	for pause := 30 * time.Millisecond; ; pause = min(2*pause, 240*time.Millisecond) { // a start of sentinel is 50 ms of processor time
		_ = ts.Exec(args[1], args[2:]...) // it may fail until then
		if want.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("never matched %q", args[0])
		}
		time.Sleep(pause)
	}
}

// jsonl KEY=VALUE...: standard output is events and then a result with the
// documented keys, and these values among them.
func jsonl(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("jsonl cannot be negated")
	}
	lines := strings.Split(strings.TrimSpace(ts.ReadFile("stdout")), "\n")
	for i, line := range lines {
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			ts.Fatalf("line %d: %v: %s", i+1, err, line)
		}
		keys := slices.Sorted(maps.Keys(object))
		if i < len(lines)-1 {
			for _, key := range []string{"event", "run", "time"} {
				if object[key] == nil {
					ts.Fatalf("line %d: event has no %q: %v", i+1, key, keys)
				}
			}
			continue
		}
		for _, key := range []string{"run", "sentinel", "status", "iterations", "durationMs", "usage", "variables"} {
			if object[key] == nil {
				ts.Fatalf("result has no %q: %v", key, keys)
			}
		}
		if object["event"] != nil {
			ts.Fatalf("the last line is an event, not the result: %s", line)
		}
		for _, arg := range args {
			key, want, _ := strings.Cut(arg, "=")
			if got := string(object[key]); got != want {
				ts.Fatalf("result has %s = %s, want %s", key, got, want)
			}
		}
	}
}

// keep NAME REGEXP: set an environment variable to what the first group of the
// expression finds in standard output, else in standard error.
func keep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: keep name regexp")
	}
	want, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	for _, stream := range []string{"stdout", "stderr"} {
		if found := want.FindStringSubmatch(ts.ReadFile(stream)); len(found) > 1 {
			ts.Setenv(args[0], found[1])
			return
		}
	}
	ts.Fatalf("%s", fmt.Sprintf("%q is not there", args[1]))
}
