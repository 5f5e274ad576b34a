package execution

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// tooLate returns the error of a decision about a question whose time limit has ended.
func tooLate(id sentinels.RunID, q *run.PendingDecision) error {
	return &abi.Error{
		Code: abi.Conflict, Permanent: true, Field: "question",
		Message: fmt.Sprintf("run %s: too late to decide %q: %s", id, textcut.Mark(q.Prompt, 200), run.LimitEnded(q.TimeoutMs, q.Deadline)),
		Hint:    "the step ends with the error timeout, at the next resume if no process executes the run; timeoutMs of the step is the limit",
	}
}

// lapsed returns the error of a decision about a question that the run asked and whose time limit has ended, nil
// if d names no such question. A decision that names none is about the last one. It is called where nothing
// that is pending fits, so the run may have ended, and the journal is where the question still is.
func (ex *Executor) lapsed(id sentinels.RunID, d run.Decision) error {
	var late *run.PendingDecision
	iteration := 0
	open := map[string]run.PendingDecision{} // approvals with a time limit that have not ended, by name
	err := history.Read(ex.opt.Store, id, 1, func(_ uint64, rec *journal.Record) error {
		switch {
		case rec.IterationStart != nil:
			iteration = rec.IterationStart.Iteration
			clear(open)
		case rec.CallStart != nil && rec.CallStart.Function == abi.FuncWait && rec.CallStart.Due != 0:
			if q, ok := ex.approvalOf(id, iteration, rec); ok {
				open[q.Call] = q
			}
		case rec.CallEnd != nil:
			q, ok := open[history.CallName(rec.Path, rec.CallEnd.Seq)]
			if !ok || d.Call != "" && d.Call != q.Call || d.Question != "" && d.Question != q.Question {
				break
			}
			delete(open, q.Call)
			if late = nil; ex.timedOut(rec.CallEnd) {
				late = &q
			}
		}
		return nil
	})
	if err != nil || late == nil {
		return err
	}
	return tooLate(id, late)
}

// timedOut reports whether a wait ended at its time limit.
func (ex *Executor) timedOut(end *journal.CallEndBody) bool {
	raw, err := ex.svc.Values.Load(end.Result)
	var result struct {
		TimedOut bool `json:"timedOut"`
	}
	return err == nil && json.Unmarshal(raw, &result) == nil && result.TimedOut
}

// approvalOf returns the question of a recorded wait; ok is false if it waits for something else.
func (ex *Executor) approvalOf(id sentinels.RunID, iteration int, rec *journal.Record) (q run.PendingDecision, ok bool) {
	raw, err := ex.svc.Values.Load(rec.CallStart.Request)
	var req struct {
		Decision *struct {
			Prompt string `json:"prompt"`
		} `json:"decision"`
		TimeoutMs int64 `json:"timeoutMs"`
	}
	if err != nil || json.Unmarshal(raw, &req) != nil || req.Decision == nil {
		return q, false
	}
	q = run.PendingDecision{Call: history.CallName(rec.Path, rec.CallStart.Seq), Kind: run.DecisionApproval, Prompt: req.Decision.Prompt,
		Deadline: time.UnixMicro(rec.CallStart.Due), TimeoutMs: req.TimeoutMs}
	q.Question = questionOf(id, iteration, rec.Attempts[len(rec.Attempts)-1], q.Call, q)
	return q, true
}
