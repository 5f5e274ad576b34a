//go:build linux

package crashtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A snapshot is what the state folder holds between two lives.
type snapshot struct {
	root     sentinels.RunID
	status   sentinels.Status
	pending  []runtime.PendingDecision
	calls    map[string]fact // by run, iteration, path with attempts, number
	steps    map[string]fact // by run, iteration, path with attempts
	programs map[program]fact
	turns    map[turn]fact // with no life
	marks    [2]int        // documents that calls made, and that are there
	ticks    [2]int        // likewise events
	shells   map[string]execution
	children map[sentinels.RunID]bool // child runs; true if a call that started one is recorded
}

// A fact is a call or a step as far as it is recorded.
type fact struct {
	kind    string
	started bool
	ended   bool
	outcome string
	nonce   string // of the start whose output the outcome has
	program string // execution id that the outcome has
}

// A program is what a step starts: the host starts each once, unless it dies.
type program struct {
	run       sentinels.RunID
	iteration int
	path      string
	name      string
}

// execution is what the test needs of a shell record.
type execution struct {
	ID    string
	Run   sentinels.RunID
	Path  string
	State string
}

var (
	nonce       = regexp.MustCompile(`nonce=(\w+)`)
	executionID = regexp.MustCompile(`"executionId":"(\w+)"`)
)

// look reads the state folder from a copy, so that nothing here changes what
// the next life finds. The engine alone opens the copy: it touches no process.
func look(t *testing.T, state string) *snapshot {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "state")
	duplicate(t, state, folder)
	s := &snapshot{
		calls: map[string]fact{}, steps: map[string]fact{}, programs: map[program]fact{}, turns: map[turn]fact{}, shells: map[string]execution{},
		children: map[sentinels.RunID]bool{},
	}
	files, err := filepath.Glob(filepath.Join(folder, "shell", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		var x execution
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &x)
		}
		if err != nil {
			t.Fatalf("shell record: %v", err)
		}
		s.shells[x.ID] = x
	}
	rt, err := runtime.Open(t.Context(), runtime.Options{Dir: folder})
	if err != nil {
		t.Fatalf("open what a kill left: %v", err)
	}
	defer rt.Close()
	runs, err := rt.Runs(runtime.RunFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range runs {
		if info.Parent == "" {
			s.root, s.status, s.pending = info.ID, info.Status, info.Decisions
		} else if _, known := s.children[info.ID]; !known {
			s.children[info.ID] = false
		}
		tr, err := rt.Trace(info.ID)
		if err != nil {
			t.Fatalf("trace: %v", err)
		}
		for _, it := range tr.Iterations {
			at := fmt.Sprintf("%s/%d", info.ID, it.Number)
			for _, step := range it.Steps {
				s.step(t, at, "", program{run: info.ID, iteration: it.Number}, step)
			}
		}
	}
	s.countStored(t, rt)
	return s
}

func (s *snapshot) countStored(t *testing.T, rt *runtime.Runtime) {
	t.Helper()
	err := rt.Documents().Update(t.Context(), func(tx *runtime.DocumentTx) error {
		return tx.Scan(context.Background(), "marks", "", false, func(sentinels.Document) bool {
			s.marks[1]++
			return true
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	events, err := rt.Events("kill:**", 10_000)
	if err != nil {
		t.Fatal(err)
	}
	s.ticks[1] = len(events)
}

// step adds a step execution with everything nested in it. around has the attempts of
// the steps around it.
func (s *snapshot) step(t *testing.T, at, around string, p program, step *runtime.TraceStep) {
	t.Helper()
	p.path = step.Path
	key := at + "/" + step.Path + around
	if step.Ended {
		s.steps[key] = fact{kind: string(step.Type), started: true, ended: true, outcome: outcome(t, step.Output, step.Error, step.Skipped)}
	}
	for _, a := range step.Attempts {
		turns := 0
		for _, c := range a.Calls {
			f := fact{kind: kindOf(step, c), started: true, ended: c.Ended}
			if c.Ended {
				f.outcome = outcome(t, c.Result, c.Error, c.Decided)
				if m := nonce.FindSubmatch(c.Result); m != nil {
					f.nonce = string(m[1])
				}
				if m := executionID.FindSubmatch(c.Result); m != nil {
					f.program = string(m[1])
				}
			}
			s.calls[fmt.Sprintf("%s%s@%d!%d", key, around, a.Number, c.Number)] = f
			switch {
			case c.Function == abi.FuncCommand && c.Label == "code/shell/execute":
				p.name = programName(t, c.Request)
				s.programs[p] = f
			case c.Function == abi.FuncCommand && strings.Contains(string(c.Request), "data/create") && c.Ended && c.Error == nil:
				s.marks[0]++
			case c.Function == abi.FuncSpawn && c.Child != "":
				s.children[c.Child] = true
			case c.Function == abi.FuncEmit && c.Ended:
				s.ticks[0]++
			case c.Function == abi.FuncLLM:
				var fields struct{ Prompt string }
				if err := json.Unmarshal(a.Fields, &fields); err != nil {
					t.Fatal(err)
				}
				s.turns[turn{prompt: fields.Prompt, number: turns}] = f
				turns++
			}
		}
		for _, nested := range a.Steps {
			s.step(t, at, fmt.Sprintf("%s@%d", around, a.Number), p, nested)
		}
	}
}

// kindOf names what a call does, for the count of what kills cut off.
func kindOf(step *runtime.TraceStep, c *runtime.TraceCall) string {
	switch {
	case c.Function == abi.FuncLLM:
		return "model turn"
	case c.Function == abi.FuncCommand && step.Type == "llm":
		return "tool of a model"
	case c.Function == abi.FuncCommand && c.Label == "code/shell/execute":
		return "program"
	case c.Function == abi.FuncCommand:
		return "command"
	case c.Function == abi.FuncWait && c.Child != "":
		return "child run"
	case c.Function == abi.FuncWait && strings.Contains(c.Label, ":"):
		return "wait for an event"
	case c.Function == abi.FuncWait:
		return "wait for a time"
	case c.Function == abi.FuncWatch:
		return "watch"
	case c.Function == abi.FuncBlock:
		return string(step.Type) // condition, loop, parallel
	}
	return c.Function
}

// programName is the word behind the script.
func programName(t *testing.T, request json.RawMessage) string {
	t.Helper()
	var r struct {
		Params struct {
			Command string
			Argv    []string
		}
	}
	if err := json.Unmarshal(request, &r); err != nil {
		t.Fatal(err)
	}
	words := append(strings.Fields(r.Params.Command), r.Params.Argv...)
	if len(words) < 3 {
		t.Fatalf("request %s names no script", request)
	}
	return words[2]
}

func outcome(t *testing.T, result json.RawMessage, failed *abi.Error, more string) string {
	t.Helper()
	text, err := json.Marshal([]any{result, failed, more})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// open counts what was under way.
func (s *snapshot) open() map[string]int {
	kinds := map[string]int{}
	for _, f := range s.calls {
		if f.started && !f.ended {
			kinds[f.kind]++
		}
	}
	for _, f := range s.programs {
		if f.ended && s.shells[f.program].State == "running" {
			kinds["background program"]++
		}
	}
	return kinds
}

// keeps reports what of an earlier snapshot is not in s any more, or differs.
func (s *snapshot) keeps(before *snapshot) []string {
	var lost []string
	for name, maps := range map[string][2]map[string]fact{"call": {before.calls, s.calls}, "step": {before.steps, s.steps}} {
		for key, was := range maps[0] {
			if is := maps[1][key]; was.ended && is != was {
				lost = append(lost, fmt.Sprintf("%s %s was recorded as %+v and is %+v", name, key, was, is))
			}
		}
	}
	return lost
}

// duplicate copies a folder without the compiled plugins.
func duplicate(t *testing.T, from, to string) {
	t.Helper()
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		source, target := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		switch {
		case e.IsDir() && e.Name() != "cache":
			duplicate(t, source, target)
		case e.Type().IsRegular():
			text, err := os.ReadFile(source)
			if errors.Is(err, fs.ErrNotExist) && filepath.Ext(source) == ".tree" {
				continue // a supervisor has just ended what the killed host left
			}
			if err == nil {
				err = os.WriteFile(target, text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}
