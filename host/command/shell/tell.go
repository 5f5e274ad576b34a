package shell

import (
	"bytes"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

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
	e        *execution
	of       Printed
	printed  int64  // bytes so far
	reported int64  // of printed
	text     []byte // to report next: the last lines
	waiting  bool   // for the timer
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
		ExecutionID: e.id, Run: call.Run, Root: call.Root, Sentinel: call.Sentinel, Path: call.Path, StepName: call.StepName, Iteration: call.Iteration, Attempt: call.Attempt,
	}}
}

// add takes lines that were written.
func (t *telling) add(text []byte) {
	if t == nil {
		return
	}
	t.printed += int64(len(text))
	if len(text) >= maxTold {
		t.text = t.text[:0]
	}
	t.text = append(t.text, lastOf(text)...)
	t.text = append(t.text[:0], lastOf(t.text)...)
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

// lastOf returns the last lines of a text that are reported, the end of the last one if that alone is
// longer: a program may write megabytes without a line end.
func lastOf(text []byte) []byte {
	if len(text) <= maxTold {
		return text
	}
	from := len(text) - maxTold
	if i := bytes.IndexByte(text[from-1:len(text)-1], '\n'); i >= 0 {
		return text[from+i:]
	}
	for i := range utf8.UTFMax - 1 { // not within a character
		if utf8.RuneStart(text[from+i]) {
			return text[from+i:]
		}
	}
	return text[from:]
}

// flush reports what was gathered.
func (t *telling) flush() {
	if t == nil || len(t.text) == 0 {
		return
	}
	p := t.of
	p.Offset = t.printed - int64(len(t.text))
	var text strings.Builder
	if p.Offset > t.reported {
		fmt.Fprintf(&text, "[%d bytes are left out here]\n", p.Offset-t.reported)
	}
	t.reported = t.printed
	for line := range bytes.Lines(t.text) {
		line, closed := bytes.CutSuffix(line, []byte{'\n'})
		text.WriteString(clean(line))
		if closed {
			text.WriteByte('\n')
		}
	}
	p.Text = text.String()
	t.text = t.text[:0]
	t.e.m.opt.Printed(p)
}
