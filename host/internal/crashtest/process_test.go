//go:build linux

package crashtest_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
)

// lifeVar is a variable that programs inherit from the host and nothing here
// uses for what it is for: it carries the name of the life that started them.
const lifeVar = "VIRTUAL_ENV"

func lifeName(life int) string { return "life-" + strconv.Itoa(life) }

// A plan is when a life ends: some time after a moment.
type plan struct {
	after moment
	event runtime.ProgressKind // with afterEvent; empty is any
	count int                  // with afterEvent: how many of them
	when  func() bool          // with afterSight: asked every millisecond
	delay time.Duration
}

type moment int

const (
	never       moment = iota // it ends by itself
	atStart                   // of the process
	afterOpen                 // the state folder is open
	afterResume               // the run continues
	afterEvent                // progress was reported
	afterSight                // an effect is visible from outside
)

// A life is one host process and its reports.
type life struct {
	number  int
	cmd     *exec.Cmd
	read    func(line []byte) (report, error)
	lines   chan report // closed at its end
	reports []report
	killed  bool
	took    time.Duration // from its start to its end
	errors  *os.File
}

// command returns the command of a host process.
func command(t *testing.T, o order, server string) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	// Not the environment of the test: of it only what a host and shells need.
	cmd.Env = []string{
		orderVar + "=" + string(text), lifeVar + "=" + lifeName(o.Life), "PATH=" + os.Getenv("PATH"), "SENTINEL_TRUST_ROOTS=/", "HOME=" + o.Workspace,
		"OPENAI_BASE_URL=" + server + "/v1", "OPENAI_API_KEY=key-of-" + lifeName(o.Life), "GORACE=halt_on_error=1",
		"GOGC=" + os.Getenv("GOGC"),
	}
	cmd.Dir = o.Workspace
	return cmd
}

// start starts a host process.
func start(t *testing.T, o order, server string) *life {
	t.Helper()
	l := &life{number: o.Life, cmd: command(t, o, server), read: readReport, lines: make(chan report, 10_000)}
	if len(o.CLI) > 0 {
		l.read = readProgress
	}
	var err error
	// A file, not a pipe: an orphan that holds it blocks no reader.
	if l.errors, err = os.OpenFile(filepath.Join(o.Workspace, "stderr"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		t.Fatal(err)
	}
	l.cmd.Stderr = l.errors
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the process
		defer close(l.lines)
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return // the end, or a line that the kill cut off
			}
			r, err := l.read(line)
			if err != nil {
				r = report{Kind: "error", Error: fmt.Sprintf("host said %q: %v", line, err)}
			}
			l.lines <- r
		}
	}()
	return l
}

// live waits for the end of the life, and brings it about as planned.
func (l *life) live(t *testing.T, p plan, on func(report)) {
	t.Helper()
	began := time.Now()
	var timer, last <-chan time.Time = nil, time.After(2 * time.Minute)
	arm := func(now bool) {
		if now && timer == nil {
			timer = time.After(p.delay)
		}
	}
	arm(p.after == atStart)
	var sight <-chan time.Time
	if p.after == afterSight {
		look := time.NewTicker(time.Millisecond)
		defer look.Stop()
		sight = look.C
	}
	events := 0
	for open := true; open; {
		var r report
		select {
		case r, open = <-l.lines:
			if !open {
				break
			}
			l.reports = append(l.reports, r)
			if on != nil {
				on(r)
			}
			if r.Progress != nil && (p.event == "" || r.Progress.Event == p.event) {
				events++
			}
			arm(p.after == afterOpen && r.Kind == "opened" || p.after == afterResume && r.Kind == "resumed" || p.after == afterEvent && events >= p.count)
		case <-sight:
			arm(p.when())
		case <-timer:
			l.killed = l.cmd.Process.Kill() == nil
			timer = nil
		case <-last:
			_ = l.cmd.Process.Kill()
			t.Fatalf("life %d: nothing ends it; its reports end with %s", l.number, l.tail())
		}
	}
	err := l.cmd.Wait()
	l.took = time.Since(began)
	_ = l.errors.Close()
	// It may have come to its own end just before, or a program killed it.
	l.killed = err != nil && strings.Contains(err.Error(), "killed")
	if err != nil && !l.killed {
		errors, _ := os.ReadFile(l.errors.Name())
		t.Fatalf("life %d ended with %v; its reports end with %s\n%s", l.number, err, l.tail(), errors)
	}
}

func readReport(line []byte) (r report, err error) {
	err = json.Unmarshal(line, &r)
	return r, err
}

// readProgress reads what the program sentinel prints with -o jsonl.
func readProgress(line []byte) (report, error) {
	var kind struct{ Event string }
	if err := json.Unmarshal(line, &kind); err != nil {
		return report{}, err
	}
	if kind.Event != "" {
		r := report{Kind: "progress", Progress: &runtime.Progress{}}
		return r, json.Unmarshal(line, r.Progress)
	}
	r := report{Kind: "result", Result: &runtime.Result{}}
	return r, json.Unmarshal(line, r.Result)
}

// saw reports whether the life said something of a kind.
func (l *life) saw(kind string) bool {
	for _, r := range l.reports {
		if r.Kind == kind {
			return true
		}
	}
	return false
}

// tail is the end of what was said, for messages.
func (l *life) tail() string {
	text, _ := json.MarshalIndent(l.reports[max(0, len(l.reports)-8):], "", " ")
	return string(text)
}

// strays returns the processes that a life up to the given one left behind:
// programs by their environment, helpers of the host by its image.
func strays(t *testing.T, workspace string, until int) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		// A process that cannot be read has ended or is not ours.
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err != nil || !bytes.Contains(env, []byte(workspace)) {
			continue
		}
		for variable := range bytes.SplitSeq(env, []byte{0}) {
			n, ok := strings.CutPrefix(string(variable), lifeVar+"=life-")
			if number, err := strconv.Atoi(n); ok && err == nil && number <= until {
				line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
				found = append(found, fmt.Sprintf("%s of life %d: %s", e.Name(), number, bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
			}
		}
	}
	return found
}

// helpers returns the processes that run this program, besides this one.
func helpers(t *testing.T) []string {
	t.Helper()
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, link := range links {
		if image, err := os.Readlink(link); err == nil && image == self && !strings.HasPrefix(link, fmt.Sprintf("/proc/%d/", os.Getpid())) {
			found = append(found, link)
		}
	}
	return found
}
