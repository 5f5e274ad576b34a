package shell

import (
	"fmt"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
)

// How often the output of an execution is reported, and how much of it at a time, in bytes.
const (
	tellEvery = 100 * time.Millisecond
	maxTold   = 4 << 10
)

// telling gathers what an execution prints for [Options.Printed]. Its owner serialises access, but for
// the timer.
type telling struct {
	e       *execution
	of      Printed
	printed int64    // bytes so far
	told    int64    // of printed
	lines   []stored // to report next, the last ones
	size    int64    // of lines
	waiting bool     // for the timer
}

// tell begins to report the output of a start for a call of a run.
func (e *execution) tell(call *command.Call) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.telling = nil
	if e.m.opt.Printed == nil || call.Run == "" {
		return
	}
	e.telling = &telling{e: e, of: Printed{
		ExecutionID: e.id, Run: call.Run, Root: call.Root, Sentinel: call.Sentinel, Path: call.Path, Iteration: call.Iteration, Attempt: call.Attempt,
	}}
}

// add takes lines that were written.
func (t *telling) add(lines []stored) {
	if t == nil {
		return
	}
	for i := range lines {
		t.printed += lines[i].size(len(lines[i].raw))
	}
	size := 0
	first := len(lines) // of the lines that fit
	for ; first > 0 && (size == 0 || size+len(lines[first-1].raw) < maxTold); first-- {
		size += len(lines[first-1].raw) + 1
	}
	if first > 0 {
		t.lines, t.size = nil, 0
	}
	for i := range lines[first:] {
		l := lines[first+i]
		t.lines, t.size = append(t.lines, l), t.size+l.size(len(l.raw))
	}
	for t.size > maxTold && len(t.lines) > 1 {
		t.size -= t.lines[0].size(len(t.lines[0].raw))
		t.lines = t.lines[1:]
	}
	if !t.waiting {
		t.waiting = true
		time.AfterFunc(tellEvery, func() {
			t.e.mu.Lock()
			defer t.e.mu.Unlock()
			t.waiting = false
			t.flush()
		})
	}
}

// flush reports what was gathered.
func (t *telling) flush() {
	if t == nil || len(t.lines) == 0 {
		return
	}
	p := t.of
	p.Offset = t.printed - t.size
	var text strings.Builder
	if p.Offset > t.told {
		fmt.Fprintf(&text, "[%d bytes are left out here]\n", p.Offset-t.told)
	}
	t.told = t.printed
	for _, line := range t.lines {
		text.WriteString(clean([]byte(line.raw)))
		if !line.open {
			text.WriteByte('\n')
		}
	}
	p.Text = text.String()
	t.lines, t.size = nil, 0
	t.e.m.opt.Printed(p)
}
