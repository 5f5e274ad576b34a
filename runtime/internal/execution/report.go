package execution

import (
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/run"
)

// report completes a progress report, redacts it and passes it to the observer.
func (ex *Executor) report(p run.Progress) {
	if ex.opt.Progress == nil {
		return
	}
	if p.Time.IsZero() {
		p.Time = time.Now()
	}
	p.Millis = float64(p.Duration.Microseconds()) / 1000
	ex.redactProgress(&p)
	ex.opt.Progress(p)
}

// redactProgress removes secrets from a progress report. Output and errors of steps are
// redacted already. A secret that a model writes in several pieces is not found in
// [run.OnText]; the whole text in the step's output is redacted.
func (ex *Executor) redactProgress(p *run.Progress) {
	redact := ex.svc.Redact
	if redact == nil {
		return
	}
	p.Params, p.Message, p.Label, p.Error = redact.JSON(p.Params), redact.Text(p.Message), redact.Text(p.Label), redact.Error(p.Error)
	if p.Decision != nil {
		pending := *p.Decision
		pending.Prompt, pending.CallKind = redact.Text(pending.Prompt), redact.Text(pending.CallKind)
		p.Decision = &pending
	}
}

// Report implements [step.Journal].
func (r *liveRun) Report(p run.Progress) {
	if r.ex.opt.Progress == nil {
		return
	}
	p.Run, p.Root, p.Sentinel = r.id, r.begin.Root, r.begin.Sentinel
	p.Unstored = !run.Info{Sentinel: r.begin.Sentinel, Revision: r.begin.Revision, By: emitsFor(r.begin.As, r.begin.Within != nil)}.OfStored()
	// A start is reported when it is durable; the first iteration may have begun then.
	if p.Iteration == 0 && p.Event != run.OnRunStart {
		p.Iteration = r.Iteration()
	}
	r.ex.report(p)
}
