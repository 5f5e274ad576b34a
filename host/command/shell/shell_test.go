//go:build unix

package shell_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/shell"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// bench is a manager with its commands and a workspace.
type bench struct {
	t   *testing.T
	m   *shell.Manager
	reg *command.Registry
	dir string
}

func newBench(t *testing.T, opt shell.Options) *bench {
	t.Helper()
	if opt.Dir == "" {
		opt.Dir = t.TempDir()
	}
	m, err := shell.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	reg, err := command.NewRegistry(shell.Commands(m)...)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t, m, reg, t.TempDir()}
}

type params map[string]any

// out has the fields of all answers that tests look at.
type out struct {
	ExecutionID string
	Running     bool
	PID         int
	URL         string
	Killed      bool
	Success     *bool
	ExitCode    *int
	Signal      string
	Output      string
	Hint        string
	Stdout      *string
	Lines       []shell.Line
	Text        string
	JSON        json.RawMessage
	Finished    bool
	TimedOut    bool
	Lost        bool
	Dropped     int
	Truncated   bool
	Stderr      *string
	ZeroBytes   int64
	Cursor      int
	From        int
}

func (b *bench) call(ctx context.Context, name string, call command.Call, p params) (out, error) {
	b.t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		b.t.Fatal(err)
	}
	call.Command, call.Params, call.Workspace = name, text, b.dir
	if call.By == "" {
		call.By, call.Run = command.ByStep, "run-1"
	}
	answer, err := b.reg.Call(ctx, &call)
	var o out
	if err != nil {
		return o, err
	}
	if len(answer) > 17<<20 {
		b.t.Errorf("%s: an answer of %d bytes", name, len(answer))
	}
	if name == "code/shell/list" || name == "code/shell/status" {
		return o, nil
	}
	if err := json.Unmarshal(answer, &o); err != nil {
		b.t.Fatal(err)
	}
	return o, nil
}

func (b *bench) do(name string, p params) out {
	b.t.Helper()
	o, err := b.call(b.t.Context(), name, command.Call{}, p)
	if err != nil {
		b.t.Fatalf("%s %v: %v", name, p, err)
	}
	return o
}

func texts(lines []shell.Line) (t []string) {
	for _, l := range lines {
		t = append(t, l.Classification+" "+l.Text)
	}
	return t
}

// TestRun checks what code/verify uses: standard input, output and the error for a
// program that does not exist.
func TestRun(t *testing.T) {
	b := newBench(t, shell.Options{})
	call := &command.Call{Command: "code/verify", By: command.ByStep, Run: "run-1", Workspace: b.dir}
	long := strings.Repeat("x", 1<<20) // more than a pipe holds
	code, text, err := b.m.Run(t.Context(), call, ".", []string{"sh", "-c", "wc -c; echo done >&2; exit 3"}, long)
	if err != nil || code != 3 || !strings.Contains(text, fmt.Sprint(len(long))) || !strings.Contains(text, "done") {
		t.Errorf("got exit code %d, %q, %v", code, text, err)
	}
	if _, _, err := b.m.Run(t.Context(), call, ".", []string{"no-such-program-here"}, ""); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("a program that does not exist: %v", err)
	}
}

func TestExecute(t *testing.T) {
	b := newBench(t, shell.Options{})
	if err := os.Mkdir(filepath.Join(b.dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		in   params
		code int
		want string
	}{
		{"line", params{"command": "echo a | tr a b"}, 0, "b\n"},
		{"exit code", params{"command": "echo x; exit 3"}, 3, "x\n"},
		{"no such command in a line", params{"command": "no-such-program-here 2>/dev/null"}, 127, ""},
		{"argv", params{"argv": []string{"printf", "%s|", "a b", "$HOME", "'"}}, 0, "a b|$HOME|'|\n"},
		{"args", params{"command": "printf '%s|'", "args": []string{"a b", "$(id)", "`id`", "\"", "-n"}}, 0, "a b|$(id)|`id`|\"|-n|\n"},
		{"stdin", params{"command": "cat", "stdin": "hello"}, 0, "hello\n"},
		{"no stdin", params{"command": "cat"}, 0, ""},
		{"cwd", params{"command": "pwd; echo $PWD", "cwd": "sub"}, 0, real + "/sub\n" + real + "/sub\n"},
		{"env", params{"command": `echo "$A-$TERM-$CI"`, "env": params{"A": "x y; z"}}, 0, "x y; z-dumb-true\n"},
		{"both streams", params{"command": "echo out; echo err >&2"}, 0, "err\nout\n"},
		{"signal", params{"command": "kill -9 $$"}, 137, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := b.do("code/shell/execute", tt.in)
			lines := strings.SplitAfter(o.Output, "\n")
			if tt.name == "both streams" { // their order is not ours to say
				if len(lines) == 3 && lines[0] == "out\n" {
					lines[0], lines[1] = lines[1], lines[0]
				}
			}
			if diff := cmp.Diff(tt.want, strings.Join(lines, "")); diff != "" {
				t.Error(diff)
			}
			if *o.ExitCode != tt.code || *o.Success != (tt.code == 0) {
				t.Errorf("exit code %d, success %v", *o.ExitCode, *o.Success)
			}
		})
	}
}

func TestExecuteErrors(t *testing.T) {
	b := newBench(t, shell.Options{})
	if err := os.Symlink("/", filepath.Join(b.dir, "root")); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		in   params
		code abi.Code
	}{
		{"nothing", params{}, abi.BadFields},
		{"both", params{"command": "a", "argv": []string{"a"}}, abi.BadFields},
		{"no program", params{"argv": []string{"no-such-program-here"}}, abi.NotFound},
		{"cwd outside", params{"command": "true", "cwd": ".."}, abi.Denied},
		{"cwd through a link", params{"command": "true", "cwd": "root/tmp"}, abi.Denied},
		{"cwd missing", params{"command": "true", "cwd": "nope"}, abi.NotFound},
		{"bad variable", params{"command": "true", "env": params{"A=B": "x"}}, abi.BadFields},
		{"variable too long", params{"command": "true", "env": params{"A": strings.Repeat("x", 200<<10)}}, abi.Limit},
		{"bad rule", params{"command": "true", "rules": []params{{"pattern": "("}}}, abi.BadFields},
		{"time", params{"command": "echo begun; sleep 60", "timeoutMs": 100}, abi.Timeout},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := b.call(t.Context(), "code/shell/execute", command.Call{}, tt.in)
			if abi.CodeOf(err) != tt.code {
				t.Errorf("got %v, want %s", err, tt.code)
			}
			if tt.name == "time" && !strings.Contains(err.Error(), "begun") {
				t.Errorf("%v does not show the output", err)
			}
		})
	}
}

func TestEnvironmentIsMinimal(t *testing.T) {
	for _, name := range []string{"OPENAI_API_KEY", "GITHUB_TOKEN", "SENTINEL_TOKEN", "AWS_SECRET_ACCESS_KEY", "SOMETHING_ELSE", "ALLOWED_ONE"} {
		t.Setenv(name, "must-not-leak-"+name)
	}
	t.Setenv("PATH", ".:relative:"+os.Getenv("PATH")+":")
	b := newBench(t, shell.Options{Pass: []string{"ALLOWED_ONE"}})
	if err := os.WriteFile(filepath.Join(b.dir, "env"), []byte("#!/bin/sh\necho taken over\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	o, err := b.call(t.Context(), "code/shell/execute", command.Call{By: command.ByStep, Run: "r", Path: "0", Key: "k1", Env: map[string]string{"ref": "value"}}, params{"command": "env"})
	if err != nil {
		t.Fatal(err)
	}
	leaks := strings.Count(o.Output, "must-not-leak")
	if leaks != 1 || !strings.Contains(o.Output, "ALLOWED_ONE=") || strings.Contains(o.Output, "taken over") {
		t.Errorf("environment is:\n%s", o.Output)
	}
	for _, want := range []string{"ref=value\n", "SENTINEL_IDEMPOTENCY_KEY=k1\n", "SENTINEL_RUN=r\n", "SENTINEL_STEP=0\n", "SENTINEL_EXECUTION=" + o.ExecutionID} {
		if !strings.Contains(o.Output, want) {
			t.Errorf("%q is missing in:\n%s", want, o.Output)
		}
	}
}

var tscRules = []params{
	{"pattern": `error TS\d+`, "classification": "error", "action": "Emit"},
	{"pattern": `noise`, "action": "Suppress"},
	{"pattern": `warning TS\d+`, "classification": "Warning", "action": "Emit"},
}

// TestBuildLoop is the shell part of the specification's first example.
func TestBuildLoop(t *testing.T) {
	b := newBench(t, shell.Options{})
	build := b.do("code/shell/execute", params{"command": "echo start; echo noise error; echo 'a.ts: error TS2304: x'; echo 'warning TS1: y'; exit 2", "wait": false})
	if !build.Running || build.ExecutionID == "" || build.Success != nil {
		t.Fatalf("got %+v", build)
	}
	b.do("code/shell/sentinel", params{"executionId": build.ExecutionID, "rules": tscRules})
	got := b.do("code/shell/watch", params{"executionId": build.ExecutionID, "until": "finished"})
	if !got.Finished || *got.ExitCode != 2 || *got.Success {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff([]string{"verbose start", "error a.ts: error TS2304: x", "warning warning TS1: y"}, texts(got.Lines)); diff != "" {
		t.Error(diff)
	}
	if got.Text != "start\na.ts: error TS2304: x\nwarning TS1: y" || got.Lines[1].LineNumber != 2 || got.Lines[0].Stream != "stdout" || got.Lines[0].Timestamp == 0 {
		t.Errorf("got %q, %+v", got.Text, got.Lines[0])
	}
}

// Specification: "only Suppress leaves lines out; unmatched lines are verbose."
func TestOnlySuppressLeavesLinesOut(t *testing.T) {
	b := newBench(t, shell.Options{})
	tests := []struct {
		name, line string
		want       []string
	}{
		{"nothing matched", "echo one; exit 1", []string{"verbose one"}},
		{"a warning, and it failed", "echo 'warning TS1'; echo reason; exit 1", []string{"warning warning TS1", "verbose reason"}},
		{"a warning, and it worked", "echo 'warning TS1'; echo reason", []string{"warning warning TS1", "verbose reason"}},
		{"an error, and its explanation", "echo noise; echo 'error TS2322: x'; echo \"  Type 'a' is not 'b'\"; exit 2", []string{"error error TS2322: x", "verbose   Type 'a' is not 'b'"}},
		{"all suppressed", "echo noise; echo noise", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			id := b.do("code/shell/execute", params{"command": tt.line, "wait": false}).ExecutionID
			got := b.do("code/shell/watch", params{"executionId": id, "rules": tscRules})
			if diff := cmp.Diff(tt.want, texts(got.Lines)); diff != "" {
				t.Error(diff)
			}
			if got.Dropped != 0 || strings.Count(got.Text, "\n")+1 < len(tt.want) {
				t.Errorf("%d dropped, text %q", got.Dropped, got.Text)
			}
		})
	}
}

// Specification: "The result holds all lines by cursor".
func TestWatchResultHoldsAllLinesByCursor(t *testing.T) {
	b := newBench(t, shell.Options{})
	const lines = 12_000
	id := b.do("code/shell/execute", params{"command": fmt.Sprintf("for i in $(seq %d); do echo line $i; done", lines), "wait": false, "rules": tscRules}).ExecutionID
	got := b.do("code/shell/watch", params{"executionId": id})
	if !got.Finished || got.From != 0 || got.Cursor != lines || len(got.Lines)+got.Dropped != lines || got.Dropped == 0 {
		t.Fatalf("from %d to %d, %d lines, %d dropped", got.From, got.Cursor, len(got.Lines), got.Dropped)
	}
	next := 0
	for at := got.From; at < got.Cursor; {
		page := b.do("code/shell/watch", params{"executionId": id, "cursor": at})
		for _, l := range page.Lines {
			if l.LineNumber != next || l.Text != fmt.Sprintf("line %d", next+1) || l.Classification != "verbose" {
				t.Fatalf("line %d is %+v", next, l)
			}
			next++
		}
		if page.Dropped != 0 || page.Cursor <= at || page.From != at {
			t.Fatalf("page from %d to %d, %d dropped", page.From, page.Cursor, page.Dropped)
		}
		at = page.Cursor
	}
	if next != lines {
		t.Errorf("the pages have %d lines, want %d", next, lines)
	}
}

// TestWatchNeedsAPlaceToMatch: a watch has the place that its caller needs for work while it matches lines, and not while
// it waits for them.
func TestWatchNeedsAPlaceToMatch(t *testing.T) {
	b := newBench(t, shell.Options{})
	id := b.do("code/shell/execute", params{"command": "echo first; while ! [ -e go ]; do sleep 0.01; done; echo second", "wait": false}).ExecutionID
	var mu sync.Mutex
	taken, held := 0, false
	text, err := json.Marshal(params{"executionId": id, "cursor": 0, "rules": []params{{"pattern": "second", "classification": "error"}}, "until": "error"})
	if err != nil {
		t.Fatal(err)
	}
	waits := make(chan struct{}, 100)
	answer, err := b.reg.Call(t.Context(), &command.Call{Command: "code/shell/watch", Params: text, Workspace: b.dir, By: command.ByUser, Busy: func(context.Context) (func(), error) {
		mu.Lock()
		defer mu.Unlock()
		taken, held = taken+1, true
		return func() {
			mu.Lock()
			defer mu.Unlock()
			if held {
				waits <- struct{}{}
			}
			held = false
			if err := os.WriteFile(filepath.Join(b.dir, "go"), nil, 0o600); err != nil { // the second line is not printed before
				t.Error(err)
			}
		}, nil
	}})
	if err != nil || !strings.Contains(string(answer), "second") {
		t.Errorf("%s %v", answer, err)
	}
	if held || taken < 2 || len(waits) != taken {
		t.Errorf("held %t, taken %d times, given back %d times", held, taken, len(waits))
	}
	if _, err := b.reg.Call(t.Context(), &command.Call{Command: "code/shell/watch", Params: text, Workspace: b.dir, By: command.ByUser, Busy: func(context.Context) (func(), error) {
		return func() {}, errors.New("no place")
	}}); err == nil || !strings.Contains(err.Error(), "no place") {
		t.Errorf("without a place: %v", err)
	}
}

func TestWatchUntil(t *testing.T) {
	b := newBench(t, shell.Options{})
	// Each line waits for the watch before it: the program reads its orders
	// from a pipe.
	orders := filepath.Join(b.dir, "orders")
	if err := os.WriteFile(filepath.Join(b.dir, "serve.sh"), []byte("mkfifo orders; while read line < orders; do echo \"$line\"; done"), 0o644); err != nil {
		t.Fatal(err)
	}
	id := b.do("code/shell/execute", params{"command": "mkfifo orders; echo ready; while true; do cat orders; done", "wait": false, "rules": []params{
		{"pattern": "ready|note", "classification": "success"}, {"pattern": "bad", "classification": "error"},
	}}).ExecutionID
	say := func(text string) {
		t.Helper()
		if err := os.WriteFile(orders, []byte(text+"\n"), 0o600); err != nil {
			t.Error(err)
		}
	}
	watch := func(until string) []string {
		t.Helper()
		o := b.do("code/shell/watch", params{"executionId": id, "until": until})
		if o.Finished {
			t.Error("finished")
		}
		return texts(o.Lines)
	}
	if diff := cmp.Diff([]string{"success ready"}, watch("match")); diff != "" {
		t.Error(diff)
	}
	var group sync.WaitGroup
	group.Go(func() { say("plain\nnote 1\nbad 1\nnote 2") })
	if diff := cmp.Diff([]string{"verbose plain", "success note 1", "error bad 1"}, watch("error")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"success note 2"}, watch("match")); diff != "" {
		t.Errorf("the next watch goes on: %s", diff)
	}
	group.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := b.call(ctx, "code/shell/watch", command.Call{}, params{"executionId": id, "until": "match"}); abi.CodeOf(err) != abi.Cancelled {
		t.Errorf("a cancelled watch: %v", err)
	}
	first := b.do("code/shell/watch", params{"executionId": id, "cursor": 0, "until": "match"})
	if diff := cmp.Diff([]string{"success ready"}, texts(first.Lines)); diff != "" {
		t.Errorf("a cursor reads again: %s", diff)
	}
	b.do("code/shell/kill", params{"executionId": id})
	if o := b.do("code/shell/watch", params{"executionId": id}); !o.Finished || o.Signal == "" && *o.ExitCode == 0 {
		t.Errorf("after kill: %+v", o)
	}
}

func TestWatchRequestOfTheABI(t *testing.T) {
	b := newBench(t, shell.Options{})
	id := b.do("code/shell/execute", params{"command": "echo a", "wait": false}).ExecutionID
	answer, err := b.m.Watch(t.Context(), "run-1", json.RawMessage(`{"executionId":"`+id+`","until":"finished"}`))
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]any
	if err := json.Unmarshal(answer, &keys); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"executionId", "lines", "text", "finished", "exitCode", "dropped", "cursor"} {
		if _, ok := keys[k]; !ok {
			t.Errorf("%s is missing in %s", k, answer)
		}
	}
	for request, code := range map[string]abi.Code{
		`{"executionId":"` + id + `","extra":1}`:                 abi.BadFields,
		`{"executionId":"` + id + `","until":"never"}`:           abi.BadFields,
		`{"executionId":"` + id + `","rules":[{"pattern":"("}]}`: abi.BadFields,
		`{"executionId":"` + id + `","cursor":-1}`:               abi.BadFields,
		`{}{}`:                               abi.BadFields,
		`{"executionId":"0000000000000000"}`: abi.NotFound,
		`{"executionId":"../../etc/passwd"}`: abi.NotFound,
		`[`:                                  abi.BadFields,
	} {
		if _, err := b.m.Watch(t.Context(), "run-1", json.RawMessage(request)); abi.CodeOf(err) != code {
			t.Errorf("%s: %v, want %s", request, err, code)
		}
	}
}

// TestFlood writes ten megabytes and accounts for every line.
func TestFlood(t *testing.T) {
	const lines, width = 100_000, 100
	b := newBench(t, shell.Options{MaxOutput: 1 << 20})
	id := b.do("code/shell/execute", params{"argv": []string{os.Args[0]}, "env": params{"SHELL_TEST_HELPER": "flood"}, "wait": false}).ExecutionID
	end := b.do("code/shell/watch", params{"executionId": id})
	if end.Cursor != lines {
		t.Fatalf("%d lines were counted, want %d", end.Cursor, lines)
	}
	if got := len(end.Lines) + end.Dropped; got != lines {
		t.Errorf("%d lines and %d dropped make %d, want %d", len(end.Lines), end.Dropped, got, lines)
	}
	last := end.Lines[len(end.Lines)-1]
	if end.Lines[0].LineNumber != 0 || last.LineNumber != lines-1 || last.Text != floodLine(lines-1, width) {
		t.Errorf("from %d to %d, %.20q", end.Lines[0].LineNumber, last.LineNumber, last.Text)
	}
	// Page by page: what is kept is whole, in order, and adds up.
	got, dropped, at := 0, 0, 0
	for {
		page := b.do("code/shell/watch", params{"executionId": id, "cursor": at})
		for _, l := range page.Lines {
			if l.Text != floodLine(l.LineNumber, width) || l.LineNumber < at {
				t.Fatalf("line %d is %.40q", l.LineNumber, l.Text)
			}
		}
		got, dropped = got+len(page.Lines), dropped+page.Dropped
		if at = page.Cursor; page.Finished {
			break
		}
	}
	if got+dropped != lines || dropped == 0 {
		t.Errorf("%d lines in pages and %d dropped, want %d", got, dropped, lines)
	}
	var size int64
	files, err := filepath.Glob(filepath.Join(b.m.Dir(), "*.out"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			size += info.Size()
		}
	}
	if size > 1<<20+256<<10 {
		t.Errorf("%d bytes on disk", size)
	}
	answer, err := b.reg.Call(t.Context(), &command.Call{Command: "code/shell/status", By: command.ByUser, Params: json.RawMessage(`{"executionId":"` + id + `"}`)})
	if err != nil {
		t.Fatal(err)
	}
	var st shell.Status
	if err := json.Unmarshal(answer, &st); err != nil {
		t.Fatal(err)
	}
	if st.Lines != lines || st.Dropped != dropped || st.DroppedBytes != int64(dropped)*(width+1) {
		t.Errorf("status counts %d lines, %d dropped, %d bytes; want %d bytes", st.Lines, st.Dropped, st.DroppedBytes, dropped*(width+1))
	}
}

func floodLine(n, width int) string {
	text := fmt.Sprintf("%08d ", n)
	return text + strings.Repeat("x", width-len(text))
}

// TestSlowReaderDoesNotBlockTheProgram: output without a reader is drained.
func TestOutputIsDrainedWithoutAReader(t *testing.T) {
	b := newBench(t, shell.Options{MaxOutput: 64 << 10})
	o := b.do("code/shell/execute", params{"command": "head -c 5000000 /dev/zero | tr '\\0' 'a'; echo; echo end"})
	if *o.ExitCode != 0 || !strings.HasSuffix(o.Output, "end\n") || o.Dropped == 0 {
		t.Errorf("exit %v, %d dropped, output ends %.40q", *o.ExitCode, o.Dropped, o.Output[max(0, len(o.Output)-40):])
	}
}

func TestRepeatedCallStartsTheSameExecution(t *testing.T) {
	b := newBench(t, shell.Options{})
	call := command.Call{By: command.ByStep, Run: "run-1", Key: "key-7"}
	run := func() out {
		t.Helper()
		o, err := b.call(t.Context(), "code/shell/execute", call, params{"command": "echo hello; sleep 600", "wait": false})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	first := run()
	b.do("code/shell/watch", params{"executionId": first.ExecutionID, "until": "match"})
	second := run()
	if first.ExecutionID != second.ExecutionID {
		t.Fatalf("ids %q and %q differ", first.ExecutionID, second.ExecutionID)
	}
	got := b.do("code/shell/watch", params{"executionId": first.ExecutionID, "until": "match"})
	for len(got.Lines) < 2 {
		got.Lines = append(got.Lines, b.do("code/shell/watch", params{"executionId": first.ExecutionID, "until": "match"}).Lines...)
	}
	if len(got.Lines) != 2 || got.Lines[0].Stream != "host" || got.Lines[1].Text != "hello" || got.Lines[1].LineNumber != 2 {
		t.Errorf("got %+v", got.Lines)
	}
	other := command.Call{By: command.ByStep, Run: "run-2", Key: "key-7"}
	if _, err := b.call(t.Context(), "code/shell/execute", other, params{"command": "true"}); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("the key of another run: %v", err)
	}
	done, err := b.call(t.Context(), "code/shell/execute", call, params{"command": "echo third"})
	if err != nil || done.Output != "third\n" {
		t.Errorf("a start shows its own output: %q, %v", done.Output, err)
	}
}

func TestLimits(t *testing.T) {
	b := newBench(t, shell.Options{MaxPerRun: 2, MaxKept: 3})
	long := params{"command": "sleep 600", "wait": false}
	b.do("code/shell/execute", long)
	id := b.do("code/shell/execute", long).ExecutionID
	model := command.Call{By: command.ByModel, Run: "run-1", Tools: []string{"code/shell/execute"}}
	if _, err := b.call(t.Context(), "code/shell/execute", model, long); abi.CodeOf(err) != abi.Limit {
		t.Errorf("a third one of a model: %v", err)
	}
	if _, err := b.call(t.Context(), "code/shell/execute", command.Call{By: command.ByStep, Run: "run-2"}, params{"command": "true"}); err != nil {
		t.Errorf("another run: %v", err)
	}
	b.do("code/shell/kill", params{"executionId": id})
	var ids []string
	for range 5 {
		ids = append(ids, b.do("code/shell/execute", params{"command": "true"}).ExecutionID)
	}
	for i, id := range ids {
		// The oldest are forgotten a moment after the newest has answered.
		var err error
		for end := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
			_, err = b.call(t.Context(), "code/shell/watch", command.Call{}, params{"executionId": id})
			if i >= 2 || abi.CodeOf(err) == abi.NotFound || time.Now().After(end) {
				break
			}
		}
		if want := i < 2; (abi.CodeOf(err) == abi.NotFound) != want {
			t.Errorf("execution %d of 5: %v", i, err)
		}
	}
}

// TestExecutionsOfPersonsStay: executions of an agent make none of a person be forgotten.
func TestExecutionsOfPersonsStay(t *testing.T) {
	b := newBench(t, shell.Options{MaxKept: 4})
	status := func(id string) error {
		_, err := b.call(t.Context(), "code/shell/status", command.Call{By: command.ByUser}, params{"executionId": id})
		return err
	}
	execute := func(call command.Call) string {
		t.Helper()
		out, err := b.call(t.Context(), "code/shell/execute", call, params{"command": "true"})
		if err != nil {
			t.Fatal(err)
		}
		return out.ExecutionID
	}
	mine := execute(command.Call{By: command.ByUser})
	agents := []string{}
	for range 12 {
		agents = append(agents, execute(command.Call{By: command.ByAgent, As: "ci"}))
	}
	// They are forgotten a moment after the newest has answered.
	for end := time.Now().Add(2 * time.Minute); abi.CodeOf(status(agents[7])) != abi.NotFound; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("executions of the agent are not forgotten")
		}
	}
	if err := status(mine); err != nil {
		t.Errorf("the execution of the person: %v", err)
	}
	if err := status(agents[11]); err != nil {
		t.Errorf("the newest one: %v", err)
	}
}

func TestRunsKeepApart(t *testing.T) {
	b := newBench(t, shell.Options{})
	id := b.do("code/shell/execute", params{"command": "sleep 600", "wait": false}).ExecutionID
	other := command.Call{By: command.ByModel, Run: "run-2", Tools: []string{"code/shell/*"}}
	for _, name := range []string{"code/shell/kill", "code/shell/sentinel"} {
		p := params{"executionId": id}
		if name == "code/shell/sentinel" {
			p["rules"] = []params{}
		}
		if _, err := b.call(t.Context(), name, other, p); abi.CodeOf(err) != abi.Denied {
			t.Errorf("%s by another run: %v", name, err)
		}
	}
	if _, err := b.call(t.Context(), "code/shell/kill", command.Call{By: command.ByUser}, params{"executionId": id}); err != nil {
		t.Errorf("a person may: %v", err)
	}
}

// TestCallersWithoutRunKeepApart: an execution without a run belongs to who called it, also after a
// restart. A person sees all.
func TestCallersWithoutRunKeepApart(t *testing.T) {
	dir := t.TempDir()
	b := newBench(t, shell.Options{Dir: dir})
	person := command.Call{By: command.ByUser}
	mine, other := command.Call{By: command.ByAgent, As: "ci"}, command.Call{By: command.ByAgent, As: "other"}
	step := command.Call{By: command.ByStep, Run: "run-1"}
	start := func(by command.Call, key string) string {
		t.Helper()
		by.Key = key
		o, err := b.call(t.Context(), "code/shell/execute", by, params{"command": "echo x; sleep 600", "wait": false})
		if err != nil {
			t.Fatal(err)
		}
		return o.ExecutionID
	}
	ofPerson, ofAgent := start(person, "k"), start(mine, "")
	refused := func(when, id string, by command.Call) {
		t.Helper()
		for _, name := range []string{
			"code/shell/status", "code/shell/watch", "code/shell/kill", "code/shell/sentinel", "logs/read", "logs/tail", "logs/search",
		} {
			p := params{"executionId": id}
			switch name {
			case "code/shell/sentinel":
				p["rules"] = []params{}
			case "logs/search":
				p["pattern"] = "x"
			case "code/shell/watch":
				p["timeoutMs"] = 100
			}
			if _, err := b.call(t.Context(), name, by, p); abi.CodeOf(err) != abi.NotFound {
				t.Errorf("%s: %s of %s%s: %v", when, name, by.By, by.As, err)
			}
		}
	}
	listed := func(by command.Call) int {
		t.Helper()
		n := -1
		for _, name := range []string{"code/shell/list", "logs/list"} {
			by.Command, by.Params = name, json.RawMessage(`{}`)
			answer, err := b.reg.Call(t.Context(), &by)
			var o struct{ Total int }
			if err == nil {
				err = json.Unmarshal(answer, &o)
			}
			if err != nil || n >= 0 && n != o.Total {
				t.Errorf("%s: %d, %v", name, o.Total, err)
			}
			n = o.Total
		}
		return n
	}
	for _, by := range []command.Call{mine, other, step} {
		refused("live", ofPerson, by)
	}
	refused("live", ofAgent, other)
	if id := start(other, "k"); id == ofPerson {
		t.Error("the key of the person gives another caller its execution")
	}
	if a, b, c := listed(person), listed(mine), listed(other); a != 3 || b != 1 || c != 1 {
		t.Errorf("lists have %d, %d and %d", a, b, c)
	}
	for id, by := range map[string]command.Call{ofAgent: mine, ofPerson: person} {
		if _, err := b.call(t.Context(), "code/shell/status", by, params{"executionId": id}); err != nil {
			t.Errorf("its own: %v", err)
		}
	}
	if _, err := b.call(t.Context(), "code/shell/kill", mine, params{"executionId": ofAgent}); err != nil {
		t.Errorf("its own: %v", err)
	}
	if err := b.m.Close(); err != nil {
		t.Fatal(err)
	}
	b = newBench(t, shell.Options{Dir: dir})
	refused("after a restart", ofPerson, mine)
	if _, err := b.call(t.Context(), "code/shell/status", mine, params{"executionId": ofAgent}); err != nil {
		t.Errorf("after a restart: its own: %v", err)
	}
}

func TestCloseIsQuietTwice(t *testing.T) {
	m, err := shell.New(shell.Options{})
	if err != nil {
		t.Fatal(err)
	}
	reg, err := command.NewRegistry(shell.Commands(m)...)
	if err != nil {
		t.Fatal(err)
	}
	call := &command.Call{Command: "code/shell/execute", Params: json.RawMessage(`{"command":"sleep 600","wait":false}`), Workspace: t.TempDir()}
	if _, err := reg.Call(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := reg.Call(t.Context(), call); abi.CodeOf(err) != abi.Cancelled {
		t.Errorf("a start after Close: %v", err)
	}
}

// TestZeroBytesAreCounted takes them out of the lines and says how many there were.
func TestZeroBytesAreCounted(t *testing.T) {
	b := newBench(t, shell.Options{})
	got := b.do("code/shell/execute", params{"command": `printf 'a\000b\n\000\000'; printf '\000' >&2`})
	if got.ZeroBytes != 4 || !strings.Contains(got.Output, "ab\n") || strings.ContainsRune(got.Output, 0) {
		t.Errorf("%+v", got)
	}
	started := b.do("code/shell/execute", params{"command": `printf 'x\000'`, "wait": false})
	if got := b.do("code/shell/watch", params{"executionId": started.ExecutionID}); got.ZeroBytes != 1 || !got.Finished {
		t.Errorf("watched: %+v", got)
	}
}

// TestStateFolderWithPatternCharacters keeps output in a folder whose path has
// the characters of a file pattern.
func TestStateFolderWithPatternCharacters(t *testing.T) {
	b := newBench(t, shell.Options{Dir: filepath.Join(t.TempDir(), "a[b*")})
	for range 2 { // the second one finds the output of the first
		got, err := b.call(t.Context(), "code/shell/execute", command.Call{Key: "same"}, params{"command": "echo hi"})
		if err != nil || !strings.HasSuffix(got.Output, "hi\n") {
			t.Fatalf("%+v, %v", got, err)
		}
	}
}
