//go:build unix

package shell_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/shell"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// logsOut has the fields of all answers of logs/*.
type logsOut struct {
	ExecutionID string
	Lines       []struct {
		LineNumber int
		Stream     string
		Timestamp  int64
		Text       string
	}
	Text       string
	Next       int
	Total      int
	Dropped    int
	Finished   bool
	Executions json.RawMessage
	Matches    []struct {
		ExecutionID string
		LineNumber  int
		Text        string
	}
	Truncated bool
	Missing   int
	Warning   string
}

func (b *bench) logs(name string, by command.By, run sentinels.RunID, p params) (o logsOut, err error) {
	b.t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		b.t.Fatal(err)
	}
	answer, err := b.reg.Call(b.t.Context(), &command.Call{Command: name, Params: text, By: by, Run: run, Tools: []string{"logs/*"}})
	if err != nil {
		return o, err
	}
	if len(answer) > 400<<10 { // a line of 32 KiB, of which each byte takes six, twice
		b.t.Errorf("%s %s: an answer of %d bytes", name, text, len(answer))
	}
	return o, json.Unmarshal(answer, &o)
}

// The original has the commands logs/list, logs/read (offset, limit), logs/tail (lines)
// and logs/search.
func TestLogs(t *testing.T) {
	b := newBench(t, shell.Options{})
	first := b.do("code/shell/execute", params{"command": "for i in 1 2 3 4 5; do echo line $i; done; echo Problem"})
	second := b.do("code/shell/execute", params{"command": "echo problem two"})

	read := func(name string, p params) logsOut {
		t.Helper()
		o, err := b.logs(name, command.ByStep, "run-1", p)
		if err != nil {
			t.Fatalf("%s %v: %v", name, p, err)
		}
		return o
	}
	if o := read("logs/list", params{"run": "run-1"}); !strings.HasPrefix(string(o.Executions), `[{"executionId":"`+second.ExecutionID) || o.Total != 2 {
		t.Errorf("list: %+v %s", o, o.Executions)
	}
	if o := read("logs/list", params{"run": "run-2"}); o.Total != 0 {
		t.Errorf("list of another run: %+v", o)
	}
	o := read("logs/read", params{"executionId": first.ExecutionID, "limit": 2, "offset": 1})
	if o.Text != "line 2\nline 3\n" || o.Next != 3 || o.Total != 6 || !o.Finished || o.Lines[0].LineNumber != 1 || o.Lines[0].Stream != "stdout" || o.Lines[0].Timestamp == 0 {
		t.Errorf("read: %+v", o)
	}
	if o := read("logs/read", params{"executionId": first.ExecutionID, "offset": 99}); len(o.Lines) != 0 || o.Next != 99 || o.Total != 6 {
		t.Errorf("read behind the end: %+v", o)
	}
	if o := read("logs/tail", params{"executionId": first.ExecutionID, "lines": 2}); len(o.Lines) != 2 || o.Next != 6 || o.Lines[0].LineNumber != 4 {
		t.Errorf("tail: %+v", o)
	}
	if o := read("logs/tail", params{}); o.ExecutionID != second.ExecutionID || o.Text != "problem two\n" {
		t.Errorf("tail of the newest: %+v", o)
	}
	if o := read("logs/search", params{"pattern": "^problem", "ignoreCase": true}); len(o.Matches) != 2 || o.Matches[0].ExecutionID != second.ExecutionID || o.Matches[1].Text != "Problem" ||
		!strings.Contains(o.Text, first.ExecutionID+":") || o.Truncated {
		t.Errorf("search: %+v", o)
	}
	if o := read("logs/search", params{"pattern": "line .", "executionId": first.ExecutionID, "maxResults": 3}); len(o.Matches) != 3 || !o.Truncated {
		t.Errorf("search with a limit: %+v", o)
	}
	if o := read("logs/search", params{"pattern": "line .", "literal": true}); len(o.Matches) != 0 {
		t.Errorf("search for plain text: %+v", o)
	}
}

// An answer is bounded, and pages and a long tail agree with what was written.
func TestLogsOfLongOutput(t *testing.T) {
	b := newBench(t, shell.Options{})
	e := b.do("code/shell/execute", params{"command": `i=0; while [ $i -lt 3000 ]; do echo "<$i> xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"; i=$((i+1)); done; head -c 400000 /dev/zero | tr '\0' '<'`})
	numbers := 0
	for next := 0; ; {
		o, err := b.logs("logs/read", command.ByUser, "", params{"executionId": e.ExecutionID, "limit": 5000, "offset": next})
		if err != nil {
			t.Fatal(err)
		}
		if len(o.Lines) == 0 {
			break
		}
		for _, l := range o.Lines {
			if l.LineNumber != numbers {
				t.Fatalf("line %d follows line %d", l.LineNumber, numbers-1)
			}
			numbers++
		}
		next = o.Next
	}
	o, err := b.logs("logs/tail", command.ByUser, "", params{"executionId": e.ExecutionID, "lines": 5000})
	if err != nil || o.Next != o.Total || o.Total != numbers || len(o.Lines) == 0 || o.Lines[len(o.Lines)-1].LineNumber != numbers-1 {
		t.Errorf("tail: %v, %d lines to %d of %d", err, len(o.Lines), o.Next, numbers)
	}
	if o, err := b.logs("logs/search", command.ByUser, "", params{"pattern": "x|<<<"}); err != nil || !o.Truncated || len(o.Matches) != 100 {
		t.Errorf("search: %v, %d matches", err, len(o.Matches))
	}
	if o, err := b.logs("logs/search", command.ByUser, "", params{"pattern": "<<<<", "maxResults": 1000}); err != nil || len(o.Matches) == 0 {
		t.Errorf("search for long lines: %v, %d matches", err, len(o.Matches))
	}
}

// TestSearchSaysWhatIsNotKept: a line that was written and is not kept cannot be found, which differs from one that
// was never written.
func TestSearchSaysWhatIsNotKept(t *testing.T) {
	b := newBench(t, shell.Options{MaxOutput: 64 << 10})
	whole := b.do("code/shell/execute", params{"command": "echo ERROR: first"})
	cut := b.do("code/shell/execute", params{"command": "seq 1 50000; echo ERROR: in the middle; seq 1 50000"})
	search := func(execution string) logsOut {
		t.Helper()
		o, err := b.logs("logs/search", command.ByStep, "run-1", params{"pattern": "ERROR", "executionId": execution})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	if o := search(whole.ExecutionID); len(o.Matches) != 1 || o.Missing != 0 || o.Warning != "" {
		t.Errorf("a whole output: %+v", o)
	}
	tail, err := b.logs("logs/tail", command.ByStep, "run-1", params{"executionId": cut.ExecutionID})
	if err != nil || tail.Missing == 0 {
		t.Fatalf("tail: %v, %d lines are missing", err, tail.Missing)
	}
	o := search(cut.ExecutionID)
	if want := fmt.Sprintf("%d lines were not searched", tail.Missing); len(o.Matches) != 0 || o.Missing != tail.Missing || !strings.HasPrefix(o.Warning, want) {
		t.Errorf("an output that is cut: %+v, want %s", o, want)
	}
	if o := search(""); len(o.Matches) != 1 || o.Missing != tail.Missing {
		t.Errorf("all executions of the run: %+v", o)
	}
}

// A model reads the output of its own run; a step may name another run, as an author does.
func TestLogsOfOtherRuns(t *testing.T) {
	b := newBench(t, shell.Options{})
	e := b.do("code/shell/execute", params{"command": "echo mine"})
	for _, tt := range []struct {
		by   command.By
		name string
		p    params
		code abi.Code
	}{
		{command.ByModel, "logs/read", params{"executionId": e.ExecutionID}, abi.Denied},
		{command.ByModel, "logs/tail", params{"run": "run-1"}, abi.Denied},
		{command.ByModel, "logs/list", params{"run": "run-1"}, abi.Denied},
		{command.ByModel, "logs/search", params{"run": "run-1", "pattern": "."}, abi.Denied},
		{command.ByModel, "logs/tail", params{}, abi.NotFound},
		{command.ByStep, "logs/tail", params{}, abi.NotFound},
		{command.ByStep, "logs/tail", params{"executionId": "0123456789abcdef"}, abi.NotFound},
		{command.ByStep, "logs/tail", params{"executionId": e.ExecutionID, "run": "run-2"}, abi.NotFound},
		{command.ByStep, "logs/search", params{"pattern": "("}, abi.BadFields},
		{command.ByStep, "logs/search", params{"pattern": ""}, abi.BadFields},
		{command.ByStep, "logs/tail", params{"run": "run-1"}, ""},
		{command.ByUser, "logs/tail", params{}, ""},
		{command.ByUser, "logs/search", params{"pattern": "mine"}, ""},
	} {
		if _, err := b.logs(tt.name, tt.by, "run-2", tt.p); abi.CodeOf(err) != tt.code {
			t.Errorf("%s by %s with %v: %v, want %q", tt.name, tt.by, fmt.Sprint(tt.p), err, tt.code)
		}
	}
}
