package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/cli"
	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/clitest"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
)

// A terminal is one invocation with a person at it.
type terminal struct {
	t          *testing.T
	keys       io.WriteCloser
	interrupts chan os.Signal
	ended      chan int
	exited     chan int

	mu     sync.Mutex
	screen bytes.Buffer // standard error
	out    bytes.Buffer
	grown  chan struct{} // closed and renewed when the screen grows
}

type writer struct {
	term *terminal
	to   *bytes.Buffer
}

func (w writer) Write(b []byte) (int, error) {
	w.term.mu.Lock()
	defer w.term.mu.Unlock()
	close(w.term.grown)
	w.term.grown = make(chan struct{})
	return w.to.Write(b)
}

// trusting reads the variables of a test, whose project needs no question.
func trusting(env map[string]string) func(string) string {
	return func(name string) string {
		value, set := env[name]
		switch {
		case !set && name == "SENTINEL_TRUST_ROOTS":
			return "/"
		case !set && name == "XDG_CACHE_HOME":
			return cacheHome
		}
		return value
	}
}

func sit(t *testing.T, dir string, env map[string]string, args ...string) *terminal {
	t.Helper()
	in, keys := io.Pipe()
	term := &terminal{t: t, keys: keys, interrupts: make(chan os.Signal, 2), ended: make(chan int, 1), exited: make(chan int, 1), grown: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		term.ended <- cli.Run(ctx, app.Env{
			Args: args, Dir: dir, Stdin: in, Stdout: writer{term, &term.out}, Stderr: writer{term, &term.screen},
			StdinTerminal: true, StdoutTerminal: true, StderrTerminal: true,
			Width:      func() int { return 60 },
			Getenv:     trusting(env),
			Interrupts: term.interrupts,
			Exit:       func(code int) { term.exited <- code; cancel() },
		})
	}()
	t.Cleanup(func() { cancel(); keys.Close(); in.Close() })
	return term
}

func (s *terminal) shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.screen.String()
}

// await returns when the screen has shown pattern.
func (s *terminal) await(pattern string) {
	s.t.Helper()
	want := regexp.MustCompile(pattern)
	late := time.After(60 * time.Second)
	for {
		s.mu.Lock()
		ok, grown := want.Match(s.screen.Bytes()), s.grown
		s.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-grown:
		case code := <-s.ended:
			s.t.Fatalf("ended with %d before it showed %q:\n%s", code, pattern, s.shown())
		case <-late:
			s.t.Fatalf("never showed %q:\n%s", pattern, s.shown())
		}
	}
}

func (s *terminal) press(line string) {
	s.t.Helper()
	if _, err := io.WriteString(s.keys, line+"\n"); err != nil {
		s.t.Fatal(err)
	}
}

func (s *terminal) end(want int) string {
	s.t.Helper()
	select {
	case got := <-s.ended:
		if got != want {
			s.t.Fatalf("exit code %d, want %d:\n%s", got, want, s.shown())
		}
	case <-time.After(60 * time.Second):
		s.t.Fatalf("does not end:\n%s", s.shown())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

// project makes a folder with a sentinel in it.
func project(t *testing.T, definition string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, ".sentinel", "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "s.json"), []byte(definition), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestTerminal runs what a person at a terminal sees and does.
func TestTerminal(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"ask": testAskAtTerminal, "agents": testAskAboutAgents, "goes away": testTerminalGoesAway, "live line": testLiveLine,
		"no colour": testNoColour, "second interrupt": testSecondInterrupt,
	} {
		t.Run(name, test)
	}
}

const twoQuestions = `{"name":"s","steps":[
	{"type":"approve","prompt":"First\u001b[2J?","outputTo":"a"},
	{"type":"approve","prompt":"Second?","outputTo":"b"}]}`

func testAskAtTerminal(t *testing.T) {
	term := sit(t, project(t, twoQuestions), map[string]string{"USER": "ann"}, "run", "s.json", "-o", "json")
	term.await(`approve \(y\) / reject \(n, or n and why\): $`)
	if strings.Contains(term.shown(), "\x1b[2J") {
		t.Error("a prompt steered the terminal")
	}
	term.press("perhaps")
	term.await(`invalid decision "perhaps"`)
	term.await(`invalid decision(?s).*approve \(y\) / reject \(n, or n and why\): $`)
	term.press("a looks fine")
	term.await(`(?s)Second\?.*approve \(y\) / reject \(n, or n and why\): $`)
	term.press("approve")
	out := term.end(0)
	for _, want := range []string{`"status": "completed"`, `"by": "ann"`, `"comment": "looks fine"`} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in the result:\n%s", want, out)
		}
	}
}

// testAskAboutAgents: the question at a terminal shows what the inbox does of the agent that started the run.
func testAskAboutAgents(t *testing.T) {
	dir := project(t, `{"name":"s","inputs":{"target":{"default":"staging"}},"steps":[{"type":"approve","prompt":"Deploy?"}]}`)
	h, err := host.Open(t.Context(), host.Options{Dir: filepath.Join(dir, host.DirName), Workspace: dir, Getenv: trusting(nil)})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if _, err := h.Call(t.Context(), "sentinel/create", json.RawMessage(`{"definition":{"name":"s","inputs":{"target":{"default":"staging"}},"steps":[{"type":"approve","prompt":"Deploy?"}]}}`)); err != nil {
		t.Fatal(err)
	}
	out, err := h.CallAs(t.Context(), &command.Call{Command: "sentinel/start", By: command.ByAgent, As: "ci", Params: json.RawMessage(`{"sentinelId":"s","inputs":{"target":"PROD"}}`)})
	var made struct{ Run string }
	if err == nil {
		err = json.Unmarshal(out, &made)
	}
	if err == nil {
		err = h.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	term := sit(t, dir, nil, "run", "--resume", made.Run)
	term.await(`(?s)what agents or models gave run ` + made.Run + `, or changed in it:\s+input "target", given by agent:ci: "PROD".*reject \(n, or n and why\): $`)
	term.press("n")
	term.end(1)
}

// A terminal that goes away leaves the run where a person can take it up.
func testTerminalGoesAway(t *testing.T) {
	term := sit(t, project(t, twoQuestions), nil, "run", "s.json")
	term.await(`approve \(y\) / reject \(n, or n and why\): $`)
	term.keys.Close()
	term.end(app.ExitWaiting)
	if !strings.Contains(term.shown(), "sentinel decide ") {
		t.Error(term.shown())
	}
	if regexp.MustCompile(`reject \(n, or n and why\): [^\n]`).MatchString(term.shown()) {
		t.Errorf("a line is glued to the question:\n%s", term.shown())
	}
}

func testLiveLine(t *testing.T) {
	dir := project(t, `{"name":"s","steps":[{"id":"nap","type":"shell","command":"sleep 1.3"}],"loop":{"type":"count","max":2}}`)
	term := sit(t, dir, nil, "run", "s.json")
	term.end(0)
	screen := term.shown()
	if !regexp.MustCompile(`\r\x1b\[2K\x1b\[2miteration 1 · 0 nap · code/shell/execute · 1s`).MatchString(screen) {
		t.Errorf("no status line after a second: %q", screen)
	}
	if !regexp.MustCompile(`\x1b\[2m#2 \x1b\[0m0   shell \x1b\[1mnap\x1b\[0m  \x1b\[32mok\x1b\[0m`).MatchString(screen) {
		t.Errorf("no line for the second pass: %q", screen)
	}
	for line := range strings.SplitSeq(screen, "\r\x1b[2K") {
		status, _, _ := strings.Cut(line, "\n")
		if n := len([]rune(stripped(status))); n > 60 && strings.HasPrefix(stripped(status), "iteration") {
			t.Errorf("status line of %d columns: %q", n, status)
		}
	}
	if !strings.HasSuffix(screen, "\r\x1b[2K") {
		t.Errorf("the status line is left behind: %q", screen[max(0, len(screen)-80):])
	}
}

func testNoColour(t *testing.T) {
	for _, env := range []map[string]string{{"NO_COLOR": "1"}, {"TERM": "dumb"}} {
		term := sit(t, project(t, `{"name":"s","steps":[{"type":"shell","command":"true"}]}`), env, "run", "s.json")
		out := term.end(0)
		if colour := regexp.MustCompile(`\x1b\[[0-9;]*m`); colour.MatchString(term.shown()) || colour.MatchString(out) {
			t.Errorf("%v: %q %q", env, term.shown(), out)
		}
	}
}

// The first Ctrl-C stops; the second does not wait for that.
func testSecondInterrupt(t *testing.T) {
	dir := project(t, `{"name":"s","steps":[{"type":"shell","command":"trap '' TERM; touch up; while :; do sleep 1; done"}]}`)
	term := sit(t, dir, nil, "run", "s.json")
	for {
		if _, err := os.Stat(filepath.Join(dir, "up")); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	term.interrupts <- os.Interrupt
	term.await(`stopping run`)
	term.interrupts <- os.Interrupt
	select {
	case code := <-term.exited:
		if code != app.ExitInterrupt {
			t.Errorf("exit code %d", code)
		}
	case <-term.ended:
		t.Error("the run was stopped before the second signal came")
	case <-time.After(2 * time.Minute):
		t.Error("the second signal did nothing")
	}
	<-term.ended
}

// stripped is s without what steers a terminal.
func stripped(s string) string {
	return regexp.MustCompile(`\x1b\[[0-9;]*[mK]|\r`).ReplaceAllString(s, "")
}

// TestTrustAtTerminal: before a run, a person is asked about what came with the folder, and
// sees what it executes. A no executes nothing, a yes is asked for once.
func TestTrustAtTerminal(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, ".sentinel", "sentinels", "s.json")
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700),
		os.WriteFile(file, []byte(`{"id":"s","name":"S\u001b[2J","steps":[{"type":"shell","command":"echo done"}]}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"XDG_CONFIG_HOME": t.TempDir(), "XDG_CACHE_HOME": cacheHome, "SENTINEL_TRUST_ROOTS": ""}
	question := `sentinels/s\.json.*\n\s+\{"id":"s","name":"S\\u001b\[2J".*"command":"echo done"\}\]\}\n.*trust this\?.* yes / no: $`
	term := sit(t, dir, env, "run", "s")
	term.await(question)
	term.press("no")
	term.end(app.ExitDenied)
	if !strings.Contains(term.shown(), "nothing of it is used") || !strings.Contains(term.shown(), "is not trusted") {
		t.Errorf("after a no:\n%s", term.shown())
	}
	term = sit(t, dir, env, "run", "s")
	term.await(question)
	term.press("yes")
	term.end(app.ExitOK)
	term = sit(t, dir, env, "run", "s")
	term.end(app.ExitOK)
	if strings.Contains(term.shown(), "trust this") {
		t.Errorf("asked again:\n%s", term.shown())
	}
}

// TestInboxOfTerminal: a terminal shows the newest few of each agent, and how the others are listed.
func TestInboxOfTerminal(t *testing.T) {
	e := &clitest.Engine{Results: map[string]any{"inbox/list": `{"entries":[{"id":"r1","kind":"approval","subject":"gate","prompt":"?","choices":["approve","reject"],"since":"2026-01-02T03:00:00Z"}],
		"more":[{"by":"agent:ci","entries":47}]}`}}
	for _, c := range []struct {
		args []string
		call string
	}{
		{[]string{"inbox"}, `inbox/list {"each":5,"limit":50}`},
		{[]string{"inbox", "--by", "agent:ci"}, `inbox/list {"by":"agent:ci","limit":50}`},
	} {
		var out, errs bytes.Buffer
		e.Calls = nil
		code := cli.Run(t.Context(), app.Env{
			Args: c.args, Dir: t.TempDir(), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, StdoutTerminal: true, Engine: e, Now: func() time.Time { return clitest.Now },
			Width: func() int { return 100 }, Getenv: trusting(nil),
		})
		if code != 0 || !slices.Equal(e.Calls, []string{c.call}) || !strings.Contains(errs.String(), "and 47 more of agent:ci: sentinel inbox --by agent:ci") {
			t.Errorf("%s: exit %d, calls %q, %s", c.args, code, e.Calls, errs.String())
		}
	}
}

// TestInboxFitsTerminal: a terminal has the prose of the inbox in lines that end with a word. Lines to type are whole.
func TestInboxFitsTerminal(t *testing.T) {
	const id = "01a207be-283b-7b36-bbb7-8aa60211067c"
	prompt := strings.TrimSpace(strings.Repeat("reconsider ", 30))
	e := &clitest.Engine{Results: map[string]any{"inbox/list": `{"entries":[
		{"id":"` + id + `","call":"0!1","kind":"approval","subject":"gate","prompt":"` + prompt + `","origin":"` + strings.Repeat("started ", 15) + `","choices":["approve","reject"],"since":"2026-01-02T03:00:00Z","lines":["` + prompt + `"]},
		{"id":"` + id + `","kind":"ticket","subject":"gate","prompt":"?","choices":["release"],"since":"2026-01-02T03:00:00Z","lines":["make all"]}]}`}}
	var out, errs bytes.Buffer
	code := cli.Run(t.Context(), app.Env{
		Args: []string{"inbox"}, Dir: t.TempDir(), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, StdoutTerminal: true, Engine: e, Now: func() time.Time { return clitest.Now },
		Width: func() int { return 80 }, Getenv: trusting(nil),
	})
	if code != 0 || strings.Count(out.String(), "reconsider") < 60 {
		t.Fatalf("exit %d, %s%s", code, out.String(), errs.String())
	}
	for line := range strings.Lines(out.String() + errs.String()) {
		if line = strings.TrimRight(line, "\n"); utf8.RuneCountInString(line) > 80 && !strings.Contains(line, " sentinel decide") {
			t.Errorf("%d columns: %s", utf8.RuneCountInString(line), line)
		}
	}
}

// TestEmitSaysWhatFires: a person reads which sentinels an event fires, or that it fires none.
func TestEmitSaysWhatFires(t *testing.T) {
	for event, want := range map[string]string{"git:push": "with a trigger for it: a, b\n", "git:pull": "no sentinel has a trigger for it"} {
		e := &clitest.Engine{Results: map[string]any{"events/emit": `{"id":"e1","event":"` + event + `"}`, "sentinel/triggers": `{"triggers":[
			{"sentinel":"a","type":"event","detail":"x:y, git:push of user"},{"sentinel":"a","type":"event","detail":"git:push"},
			{"sentinel":"b","type":"event","detail":"*:push"},{"sentinel":"c","type":"file","detail":"git:push"}]}`}}
		var out, errs bytes.Buffer
		code := cli.Run(t.Context(), app.Env{
			Args: []string{"emit", event}, Dir: t.TempDir(), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, StdoutTerminal: true, Engine: e,
			Now: func() time.Time { return clitest.Now }, Width: func() int { return 80 }, Getenv: trusting(nil),
		})
		if code != 0 || out.String() != event+"  e1\n" || !strings.HasPrefix(errs.String(), want) {
			t.Errorf("%s: exit %d, %s%s", event, code, out.String(), errs.String())
		}
	}
}

// TestRowsFitTerminal: a trace, a list and the triggers have no row that the terminal breaks. Columns go before cells are cut, and
// what says why something fails is whole.
func TestRowsFitTerminal(t *testing.T) {
	const cause = "exit code 4: a cause with many words, so that it does not fit on a line of eighty characters, up to its end"
	const problem = ".sentinel/sentinels/nightly-backup-of-the-archive.json:3:14: steps[0].comand: unknown key 'comand', and so on up to the end"
	e := &clitest.Engine{Results: map[string]any{
		"sentinel/list": `{"sentinels":[{"sentinelId":"nightly-backup-of-the-archive","name":"Nightly backup","status":"idle","loop":"once","steps":2,"revision":12,
			"runCount":31,"file":".sentinel/sentinels/nightly-backup-of-the-archive.json","problem":"` + problem + `","triggers":[{"type":"schedule","detail":"*/5 * * * *"}]}],
			"runs":[{"id":"01a207be-283b-7b36-bbb7-8aa60211067c","sentinel":"nightly-backup-of-the-archive","status":"failed","iteration":1,
			"createdAt":"2026-01-02T03:00:00Z","reason":"error","error":{"code":"output","message":"` + cause + `"}}]}`,
		"sentinel/trace": `{"run":{"id":"01a207be-283b-7b36-bbb7-8aa60211067c","sentinel":"nightly-backup-of-the-archive","status":"failed","reason":"error",
			"error":{"code":"output","message":"` + cause + `"}},"iterations":[{"number":1,"start":"2026-01-02T03:00:00Z","steps":[
			{"path":"0","type":"shell","ended":true,"outputTo":"line","output":{"executionId":"a94121301fa9f1f6","success":true,"exitCode":0,"text":"` + strings.Repeat("long ", 30) + `","output":"` + strings.Repeat("long ", 30) + `"}},
			{"path":"1","type":"shell","ended":true,"error":{"code":"output","message":"` + cause + `"}}]}]}`,
		"sentinel/triggers": `{"triggers":[{"sentinel":"nightly-backup","type":"schedule","detail":"*/5 * * * *","next":"2026-01-02T03:05:00Z","lastFire":"2026-01-02T03:00:00Z",
			"fired":40,"started":10,"skipped":30,"skips":{"count":14,"since":"2026-01-02T01:04:05Z","run":"01a207be-283b-7b36-bbb7-8aa60211067c"}}]}`,
	}}
	for _, c := range []struct {
		args []string
		want []string // white space aside
	}{
		{[]string{"list"}, []string{"SENTINEL STATUS TRIGGER", "schedule */5 * * * *", "nightly-backup-of-the-archive: " + problem}},
		{[]string{"trace", "01a207be-283b-7b36-bbb7-8aa60211067c"}, []string{"characters, up to its end iteration 1", "$line.text long long", "1 shell failed", cause}},
		{[]string{"triggers"}, []string{"40, 10 started, 30 skipped", "nightly-backup: 14 firings skipped since 2h ago, run 0211067c is active"}},
	} {
		for _, width := range []int{60, 80, 100} {
			var out, errs bytes.Buffer
			code := cli.Run(t.Context(), app.Env{
				Args: c.args, Dir: t.TempDir(), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, StdoutTerminal: true, Engine: e, Now: func() time.Time { return clitest.Now },
				Width: func() int { return width }, Getenv: trusting(map[string]string{"NO_COLOR": "1"}),
			})
			if code != 0 {
				t.Fatalf("%s: exit %d, %s", c.args, code, errs.String())
			}
			for line := range strings.Lines(out.String()) {
				if n := output.Width(termtext.Text(strings.TrimSuffix(line, "\n"))); n > width {
					t.Errorf("%s in %d columns: a row of %d: %s", c.args, width, n, line)
				}
			}
			joined := strings.Join(strings.Fields(out.String()), " ")
			for _, want := range c.want {
				if width >= 80 && !strings.Contains(joined, want) {
					t.Errorf("%s in %d columns: no %q in\n%s", c.args, width, want, out.String())
				}
			}
		}
	}
}
