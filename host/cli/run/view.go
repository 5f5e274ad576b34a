package run

import (
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// newView picks how a run is shown: events as JSON on standard output, a live
// line on a terminal, or plain lines. Those of a task have what the model does and the
// checks, without the steps of the sentinel around them.
func (a verbs) newView(id sentinels.RunID, task bool) view {
	shown := lines{app: a, paint: a.Paint, root: id, task: task}
	switch {
	case a.Flags.Output == output.FormatJSONL:
		return &jsonView{a}
	case a.Flags.Quiet:
		return silentView{}
	case a.Env.StderrTerminal && a.Env.Getenv("TERM") != "dumb":
		return &liveView{lines: shown, began: a.Env.Now()}
	}
	shown.prints = true
	return &plainView{shown}
}

// jsonView writes every event as a line of JSON, children's too.
type jsonView struct{ app verbs }

// show writes one line. Pieces of text are left out: the whole text is in the step's output.
func (v *jsonView) show(p runtime.Progress) {
	if p.Event.Partial() {
		return
	}
	if err := v.app.WriteJSON(p); err != nil && !v.app.StdoutClosed {
		// The reader of the events is closed, which does not stop the run.
		v.app.StdoutClosed = true
		v.app.ErrorMessage("write event: "+err.Error(), "the run continues; `sentinel logs` shows its progress")
	}
}

func (v *jsonView) flush() bool { return false }
func (v *jsonView) tick()       {}
func (v *jsonView) hold(bool)   {}
func (v *jsonView) close()      {}

type silentView struct{}

func (silentView) show(runtime.Progress) {}
func (silentView) flush() bool           { return false }
func (silentView) tick()                 {}
func (silentView) hold(bool)             {}
func (silentView) close()                {}

var (
	_ view = (*jsonView)(nil)
	_ view = silentView{}
	_ view = (*plainView)(nil)
	_ view = (*liveView)(nil)
)
