package run

import (
	"math"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// redraw bounds how often the status line is drawn.
const redraw = 80 * time.Millisecond

// clearLine takes the status line away and leaves the cursor at its beginning.
const clearLine = "\r\x1b[2K"

// liveView keeps one line at the bottom of a terminal up to date and lets the
// lines of what has ended scroll by above it.
type liveView struct {
	lines
	began     time.Time
	iteration int
	open      []runtime.Progress // steps under way, in the order of their start
	call      runtime.Progress   // the newest call under way
	items     runtime.Progress   // of the loop that reported its items last, until it ends
	text      string             // the end of the text of a model or of what a command prints
	usage     sentinels.Usage
	paused    bool

	held    bool // a question is on the terminal
	waiting []termtext.Text
	drawn   bool
	stale   bool // the line is not what it should be
	last    time.Time
}

// show writes the lines for p above the status line, and leaves the
// status line itself to flush: many events come at once.
func (v *liveView) show(p runtime.Progress) {
	v.note(p)
	more := v.of(p)
	if v.held {
		v.waiting = append(v.waiting, more...)
		return
	}
	if len(more) > 0 {
		v.clear()
		v.app.PrintErr("%s\n", termtext.Join(more, "\n"))
	}
	v.stale = true
}

// flush draws the line, unless it was drawn a moment ago. It reports whether it
// still has to be.
func (v *liveView) flush() bool {
	if v.held || !v.stale {
		return false
	}
	if v.drawn && v.app.Env.Now().Sub(v.last) < redraw {
		return true
	}
	v.draw()
	return false
}

// note updates the state that the status line shows.
func (v *liveView) note(p runtime.Progress) {
	switch p.Event {
	case runtime.OnIterationStart:
		if p.Run == v.root {
			v.iteration = p.Iteration
		}
	case runtime.OnStepStart:
		v.drop(p)
		v.open = append(v.open, p)
	case runtime.OnItems:
		v.items = p
	case runtime.OnStepEnd:
		v.drop(p)
		v.text = ""
		if v.items.Run == p.Run && v.items.Path == p.Path {
			v.items = runtime.Progress{}
		}
	case runtime.OnCallStart:
		v.call, v.text = p, ""
	case runtime.OnCallEnd:
		if v.call.Run == p.Run && v.call.Path == p.Path && v.call.Function == p.Function {
			v.call, v.text = runtime.Progress{}, ""
		}
		if p.Usage != nil {
			v.usage.Add(*p.Usage)
		}
	case runtime.OnText, runtime.OnOutput:
		v.text += p.Message
		if n := len(v.text) - 400; n > 0 {
			v.text = strings.ToValidUTF8(v.text[n:], "") // the cut may be inside a character
		}
	case runtime.OnStatus:
		if p.Run == v.root {
			v.paused = p.Status == sentinels.StatusPaused
		}
	}
}

// drop takes a step out of those under way; a new attempt puts it in again.
func (v *liveView) drop(p runtime.Progress) {
	for i, s := range v.open {
		if s.Run == p.Run && s.Path == p.Path {
			v.open = append(v.open[:i], v.open[i+1:]...)
			return
		}
	}
}

// tick redraws the line, for its clock.
func (v *liveView) tick() {
	if !v.held {
		v.draw()
	}
}

// hold delays all output while a question is on the terminal: lines would break up what
// the user types.
func (v *liveView) hold(on bool) {
	v.clear()
	v.held = on
	if !on {
		for _, s := range v.waiting {
			v.app.PrintErr("%s\n", s)
		}
		v.waiting = nil
		v.draw()
	}
}

// close leaves the terminal as if there had been no line.
func (v *liveView) close() {
	v.clear()
	v.held = true
}

// clear takes the line away, if it is there.
func (v *liveView) clear() {
	if v.drawn {
		v.app.PrintErr(clearLine)
		v.drawn = false
	}
}

// draw writes the status line. It is cut to the terminal's width: a line that
// wraps could not be taken away again.
func (v *liveView) draw() {
	v.last, v.stale = v.app.Env.Now(), false
	parts := []termtext.Text{}
	if v.iteration > 0 && !v.task {
		parts = append(parts, termtext.Sprintf("iteration %d", v.iteration))
	}
	if n := len(v.open); n > 0 {
		s := v.open[n-1]
		name := string(s.Type)
		if s.Step != "" {
			name = s.Step
		}
		if !v.task {
			name = s.Address + " " + name
		}
		parts = append(parts, output.Escape(name))
	}
	if text := itemsText(v.items); text != "" {
		parts = append(parts, text)
	}
	switch {
	case v.task && v.call.ByModel:
		parts = append(parts, v.toolName(v.call, 0))
	case v.call.Label != "":
		parts = append(parts, output.Escape(v.call.Label))
	}
	if v.paused {
		parts = append(parts, "paused")
	}
	parts = append(parts, output.Clock(v.app.Env.Now().Sub(v.began)))
	if s := output.Spent(v.usage); s != "" {
		parts = append(parts, s)
	}
	line := termtext.Join(parts, " · ")
	width := max(10, v.app.Env.Width()-1)
	if left := width - len([]rune(line)) - 3; v.text != "" && left > 20 {
		text := []rune(output.Clip(v.text, math.MaxInt))
		line += " · " + termtext.Text(text[max(0, len(text)-left):])
	}
	v.app.PrintErr("%s", clearLine+v.app.Paint.Dim(output.Cut(line, width)))
	v.drawn = true
}
