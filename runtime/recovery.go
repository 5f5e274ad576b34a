package runtime

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// recovery is what the records of a run come to, taken up one by one.
type recovery struct {
	rt      *Runtime
	info    RunInfo
	seq     uint64
	elapsed int64

	definitions definitionTrail

	scope      *scope
	branches   map[string]*scope // of parallel blocks that are open
	history    *history
	open       bool // an iteration began and did not end
	iteration  int
	event      *sentinels.Event
	eventSeq   uint64 // outbox position of event, 0 if it started the run
	passEnded  int64  // when the newest iteration ended, microseconds since 1970
	done       bool   // the loop reached its end with that iteration
	rag        json.RawMessage
	usage      sentinels.Usage
	room       journal.LimitExtension
	failedStep string
	eventBytes int64 // of the events that the iteration has emitted
	verdicts   map[string]*journal.SignalBody
	cursors    map[string]uint64
}

// newRecovery is a run as it stands before its first iteration.
func newRecovery(rt *Runtime, info RunInfo, begin *journal.RunStartBody) (*recovery, error) {
	st := &recovery{
		rt: rt, info: info, seq: 1, definitions: newDefinitionTrail(begin), scope: newScope(), branches: map[string]*scope{},
		verdicts: map[string]*journal.SignalBody{}, cursors: map[string]uint64{},
	}
	for name, v := range begin.Variables {
		st.scope.set(name, v)
	}
	if f := begin.Fork; f != nil && f.Iteration > 0 {
		vars, last, err := rt.forkedScope(f)
		if err != nil {
			return nil, err
		}
		st.scope.replace(vars, last)
		st.iteration = f.Iteration - 1
		maps.Copy(st.cursors, f.Cursors)
	}
	return st, nil
}

func (st *recovery) add(rec *journal.Record) error {
	st.elapsed = max(st.elapsed, rec.Elapsed)
	st.definitions.add(rec)
	switch rec.Kind {
	case journal.IterationEnd:
		st.passEnded = rec.Time
		return st.iterationEnd(rec.IterationEnd)
	case journal.IterationStart:
		return st.iterationStart(rec.IterationStart)
	case journal.Signal:
		st.signal(rec.Signal)
		return nil
	}
	if st.history == nil {
		return nil
	}
	// A decision is used up when the call has an answer or is made again: what
	// asks under the same name later asks anew.
	switch {
	case rec.CallEnd != nil:
		delete(st.verdicts, askName(rec.Path, rec.CallEnd.Seq))
	case rec.CallStart != nil:
		delete(st.verdicts, askName(rec.Path, rec.CallStart.Seq))
	}
	again := rec.CallStart != nil && st.started(rec) != nil
	st.history.add(rec)
	if rec.CallStart != nil && again || rec.CallEnd != nil && rec.CallEnd.Decided != "" && rec.CallEnd.Decided != "retry" {
		st.doubted(rec)
	}
	return st.apply(rec)
}

// started returns the start of the call that rec, a call.start or call.end, is
// about, as the records before it have it.
func (st *recovery) started(rec *journal.Record) *journal.CallStartBody {
	var seq int
	if rec.CallStart != nil {
		seq = rec.CallStart.Seq
	} else {
		seq = rec.CallEnd.Seq
	}
	own := len(rec.Attempts) - 1
	if e := st.history.exec(rec.Path, rec.Attempts[:own]); e != nil && e.attempts[rec.Attempts[own]] != nil {
		if c := e.attempts[rec.Attempts[own]].calls[seq]; c != nil {
			return c.start
		}
	}
	return nil
}

// doubted counts the worst case of a model call that was in doubt as spent.
func (st *recovery) doubted(rec *journal.Record) {
	if s := st.started(rec); s != nil && s.Reserved != nil {
		st.usage.Add(*s.Reserved)
	}
}

func (st *recovery) iterationEnd(b *journal.IterationEndBody) error {
	raw, err := st.rt.load(b.Variables)
	if err != nil {
		return err
	}
	var vars map[string]json.RawMessage
	if err := json.Unmarshal(raw, &vars); err != nil {
		return err
	}
	last, err := st.rt.load(b.Last)
	if err != nil {
		return err
	}
	st.scope.replace(vars, last)
	st.iteration, st.usage, st.open, st.done, st.history = b.Iteration, b.Usage, false, b.Done, nil
	st.room = journal.LimitExtension{}
	clear(st.verdicts)
	if b.Extension != nil {
		st.room = *b.Extension
	}
	for p, n := range b.Cursors {
		st.cursors[p] = n
	}
	return nil
}

func (st *recovery) iterationStart(b *journal.IterationStartBody) error {
	rag, err := st.rt.load(b.RAGContext)
	if err != nil {
		return err
	}
	if rag != nil {
		st.scope.unset("ragContext")
	}
	st.iteration, st.event, st.rag, st.open, st.history = b.Iteration, b.Event, rag, true, newHistory()
	st.eventSeq, st.eventBytes = b.EventSeq, 0
	return nil
}

func (st *recovery) signal(b *journal.SignalBody) {
	if b.Extension != nil {
		st.room.Iterations += b.Extension.Iterations
		st.room.TimeoutMs += b.Extension.TimeoutMs
		st.room.CostUSD += b.Extension.CostUSD
		st.room.Tokens += b.Extension.Tokens
		st.room.Calls += b.Extension.Calls
	}
	switch {
	case b.Type == signalTaken:
		delete(st.verdicts, b.Call)
	case b.Call != "":
		st.verdicts[b.Call] = b
	}
}

// apply changes the scopes as the record's happening did, in the same order.
func (st *recovery) apply(rec *journal.Record) error {
	sc := st.scopeOf(rec.Path, rec.Attempts)
	switch rec.Kind {
	case journal.StepEnd:
		out, err := st.rt.load(rec.StepEnd.Output)
		if err != nil {
			return err
		}
		applyEnd(sc, rec.StepEnd, out)
		st.failedStep = failedAt(st.failedStep, addressOf(rec.Path), rec.StepEnd.Error != nil && rec.StepEnd.Skipped == "")
	case journal.CallStart:
		if rec.CallStart.Function == abi.FuncBlock {
			return st.blockStart(rec, sc)
		}
	case journal.CallEnd:
		b := rec.CallEnd
		for name, v := range b.Sets {
			sc.set(name, v)
		}
		st.eventBytes += b.Emitted
		if b.Usage != nil {
			st.usage.Add(*b.Usage)
		}
		if b.Blocks > 1 {
			st.blockEnd(rec, sc)
		}
		if b.EventSeq != 0 {
			st.eventPassed(rec)
		}
	}
	return nil
}

func (st *recovery) blockStart(rec *journal.Record, sc *scope) error {
	raw, err := st.rt.load(rec.CallStart.Request)
	if err != nil {
		return err
	}
	var req blockRequest
	if err := strictjson.Decode(raw, &req, requestLimits); err != nil {
		return err
	}
	for i, b := range req.Blocks {
		into := sc
		if len(req.Blocks) > 1 {
			into = sc.branch()
			st.branches[execKey(fmt.Sprintf("%s#%d", rec.Path, rec.CallStart.Block+i), rec.Attempts)] = into
		}
		for name, v := range b.Vars {
			into.set(name, v)
		}
	}
	return nil
}

// blockEnd joins the branches of a parallel block as the live run did.
func (st *recovery) blockEnd(rec *journal.Record, sc *scope) {
	exec := st.history.exec(rec.Path, rec.Attempts[:len(rec.Attempts)-1])
	first := exec.attempts[rec.Attempts[len(rec.Attempts)-1]].calls[rec.CallEnd.Seq].start.Block
	joined := map[int]bool{}
	for _, i := range rec.CallEnd.Joined {
		joined[i] = true
	}
	for i := range rec.CallEnd.Blocks {
		key := execKey(fmt.Sprintf("%s#%d", rec.Path, first+i), rec.Attempts)
		if b := st.branches[key]; b != nil && joined[i] {
			sc.join(b)
		}
		delete(st.branches, key)
	}
}

func (st *recovery) eventPassed(rec *journal.Record) {
	exec := st.history.exec(rec.Path, rec.Attempts[:len(rec.Attempts)-1])
	start := exec.attempts[rec.Attempts[len(rec.Attempts)-1]].calls[rec.CallEnd.Seq].start
	if start != nil {
		st.cursors[start.Label] = max(st.cursors[start.Label], rec.CallEnd.EventSeq)
	}
}

// scopeOf returns the scope a record belongs to: that of the innermost open
// parallel block around its step.
func (st *recovery) scopeOf(path string, attempts []int) *scope {
	for end := len(path); ; {
		at := strings.LastIndexByte(path[:end], '#')
		if at < 0 {
			return st.scope
		}
		stop := strings.IndexByte(path[at:], '.')
		depth := strings.Count(path[:at], "#") + 1
		if stop > 0 && depth <= len(attempts) {
			if sc := st.branches[execKey(path[:at+stop], attempts[:depth])]; sc != nil {
				return sc
			}
		}
		end = at
	}
}
