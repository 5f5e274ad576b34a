package execution

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A runEvent is the data of an event of a run.
type runEvent struct {
	Run        sentinels.RunID  `json:"run"`
	Sentinel   sentinels.ID     `json:"sentinel"`
	Parent     sentinels.RunID  `json:"parent,omitempty"`
	Status     sentinels.Status `json:"status"`
	Reason     string           `json:"reason,omitempty"`
	Error      *abi.Error       `json:"error,omitempty"`
	Iterations int              `json:"iterations"`
	DurationMs int64            `json:"durationMs"`
	Usage      sentinels.Usage  `json:"usage"`
}

// eventWord returns the word of the event of a change of a run's status, "" for none.
func eventWord(before, after sentinels.Status) string {
	switch {
	case before == after, before == sentinels.StatusQueued && after == sentinels.StatusRunning: // its start was the event
		return ""
	case after == sentinels.StatusRunning, after == sentinels.StatusQueued:
		return sentinels.RunResumed
	}
	return string(after) // the words are those of the statuses
}

// statusEvent returns the event of a change of the run's summary, nil if there is none
// or no reader may wait for it. The caller holds r.log.mu.
func (r *liveRun) statusEvent(after *run.Info, records []*journal.Record) *sentinels.Event {
	r.mu.Lock()
	word := eventWord(r.announced, after.Status)
	// A host that starts takes all runs over. That is no event of theirs, and a run that
	// waits again for the same does not say so again.
	if r.recovered && len(records) > 0 && records[0].Status != nil && records[0].Status.Resumed {
		word = ""
	} else {
		r.announced = after.Status
	}
	seq := r.folded.Seq
	r.mu.Unlock()
	if len(records) > 0 && records[0].RunStart != nil {
		word = sentinels.RunStarted
	}
	if word == "" || !r.ex.svc.Expected.Has(sentinels.RunEventName(after.Sentinel, word)) {
		return nil
	}
	total := *after
	total.Usage = r.budget.Total(r.id) // with that of children, as the result has it
	return r.ex.runEvent(&total, word, seq, r.statusChain(), r.EventsBy(), r.eventSource(after))
}

// eventSource returns the source of the events of the run.
func (r *liveRun) eventSource(info *run.Info) string {
	r.mu.Lock()
	used := history.Definition{Revision: r.revision, Edit: r.edit, Within: r.within}
	r.mu.Unlock()
	return r.ex.eventSource(info, used)
}

// eventSource returns the source of the events of a run that uses a definition: that of the stored sentinel, or one of
// the run alone. Of the run alone are those where the definition is not stored, or where an agent or a model has
// made an edit of the run or a revision of a person's sentinel that no person has accepted: who waits for the sentinel
// has not seen what that does.
func (ex *Executor) eventSource(info *run.Info, used history.Definition) string {
	if info.OfStored() && (used.Edit == 0 || used.Within == nil) && !ex.unaccepted(info, used) {
		return sentinels.EngineSource(info.Sentinel)
	}
	return sentinels.UnstoredSource(info.ID)
}

// unaccepted reports whether an agent or a model has made the revision that a run uses, of a sentinel that has one of a
// person. One that cannot be read counts as theirs.
func (ex *Executor) unaccepted(info *run.Info, used history.Definition) bool {
	if used.Revision == 0 || info.By == "" && used.Within == nil { // theirs bound the run
		return false
	}
	stored, err := ex.opt.Definitions.Revision(info.Sentinel, used.Revision)
	if err == nil && stored.OfPerson() {
		return false
	}
	if err != nil && abi.CodeOf(err) != abi.NotFound {
		ex.svc.Log.Warn("the author of a revision cannot be read, events of its run set off nothing", "run", info.ID, "sentinel", info.Sentinel, "revision", used.Revision, "error", err)
		return true
	}
	before, err := ex.opt.Definitions.OfPerson(info.Sentinel, 0)
	return err != nil || before.Revision != 0
}

// expect has the engine write the events of runs that the run may wait for by a
// definition, none for nil. Stored definitions are expected anyway, but the run may have
// another one, or an older revision.
func (r *liveRun) expect(definition []byte) {
	r.ex.svc.Expected.Set("run "+string(r.id), eventlog.RunPatterns(definition)...)
}

// storedEvent is statusEvent for a record of a run that no process executes.
func (ex *Executor) storedEvent(info *run.Info, rec *journal.Record, seq uint64) (*sentinels.Event, error) {
	if rec.Status == nil && rec.RunEnd == nil {
		return nil, nil
	}
	word := eventWord("", info.Status)
	if !ex.svc.Expected.Has(sentinels.RunEventName(info.Sentinel, word)) {
		return nil, nil
	}
	used := history.Definition{Revision: info.Revision, Edit: info.Edit}
	if stored, err := ex.opt.Definitions.Revision(info.Sentinel, info.Revision); err == nil {
		used.Within = stored.Within
	}
	if info.Edit != 0 {
		used.Within = []string{} // who made the edit is not known here
	}
	begin, err := ex.startOf(info.ID)
	if err != nil {
		return nil, err
	}
	by := cmp.Or(emitsFor(begin.As, begin.Within != nil), begin.CausedBy)
	return ex.runEvent(info, word, seq, chainOf(begin, eventlog.ChainOf(begin.Event)), by, ex.eventSource(info, used)), nil
}

func (ex *Executor) runEvent(info *run.Info, word string, seq uint64, c chain, by, source string) *sentinels.Event {
	data, err := json.Marshal(runEvent{
		Run: info.ID, Sentinel: info.Sentinel, Parent: info.Parent, Status: info.Status, Reason: info.Reason, Error: info.Error,
		Iterations: info.Iteration, DurationMs: info.Elapsed, Usage: info.Usage,
	})
	if err != nil {
		panic(fmt.Errorf("encode event of run %s: %w", info.ID, err))
	}
	return &sentinels.Event{
		ID: fmt.Sprintf("%s/%d", info.ID, seq), Name: sentinels.RunEventName(info.Sentinel, word), Source: source,
		Time: time.Now().UTC(), Data: data, Hops: c.Hops, Path: c.Path, By: by,
	}
}

// recoveredEvent is the data of an event sentinel:ID:recovered.
type recoveredEvent struct {
	Sentinel sentinels.ID    `json:"sentinel"`
	Status   string          `json:"status"`
	Run      sentinels.RunID `json:"run"`
	After    sentinels.RunID `json:"after"`
}

// maxRecoveryRuns bounds the runs of a sentinel that are read for the one that ended before.
const maxRecoveryRuns = 100

// recoveredFrom returns the run of the sentinel that ended last before this one, if it failed or
// timed out and this one completes, and if there may be a reader for the event. Runs that other
// runs started do not count, and neither do those that were stopped.
func (r *liveRun) recoveredFrom(status sentinels.Status) sentinels.RunID {
	r.mu.Lock()
	info := r.info
	r.mu.Unlock()
	if status != sentinels.StatusCompleted || info.Parent != "" || !info.OfStored() || !r.ex.svc.Expected.Has(sentinels.RunEventName(info.Sentinel, sentinels.SentinelRecovered)) {
		return ""
	}
	list, err := r.ex.opt.Index.List(run.Filter{
		Sentinel: info.Sentinel, OfStored: true, Statuses: []sentinels.Status{sentinels.StatusCompleted, sentinels.StatusFailed, sentinels.StatusTimedOut}, Limit: maxRecoveryRuns,
	})
	if err != nil {
		r.ex.svc.Log.Warn("it is not known whether the sentinel has recovered", "run", r.id, "sentinel", info.Sentinel, "error", err)
		return ""
	}
	var last run.Info
	for _, i := range list {
		if i.Parent == "" && i.ID != r.id && i.EndedAt.After(last.EndedAt) {
			last = i
		}
	}
	if last.Status == sentinels.StatusCompleted {
		return ""
	}
	return last.ID
}

// announceRecovery writes the event of a run that completed after one that did not. It is not in the
// commit of the run's end but the next one: a crash between both loses it.
func (r *liveRun) announceRecovery(after sentinels.RunID) *store.Ticket {
	r.mu.Lock()
	info := r.info
	r.mu.Unlock()
	id := info.Sentinel
	data, err := json.Marshal(recoveredEvent{id, sentinels.SentinelRecovered, r.id, after})
	if err != nil {
		panic(fmt.Errorf("encode event of run %s: %w", r.id, err))
	}
	c := r.statusChain()
	return r.ex.enqueue(store.Batch{}, &sentinels.Event{
		ID: string(r.id) + "/" + sentinels.SentinelRecovered, Name: sentinels.RunEventName(id, sentinels.SentinelRecovered), Source: r.eventSource(&info),
		Time: time.Now().UTC(), Data: data, Hops: c.Hops, Path: c.Path, By: r.EventsBy(),
	})
}

// Announce commits a batch with the event sentinel:ID:WORD, which is not about a run, if there may
// be a reader for it. key is unique among such events of the sentinel.
func (ex *Executor) Announce(id sentinels.ID, word, key string, data any, b store.Batch) *store.Ticket {
	name := sentinels.RunEventName(id, word)
	if !ex.svc.Expected.Has(name) {
		return ex.enqueue(b, nil)
	}
	raw, err := json.Marshal(data)
	if err != nil {
		panic(fmt.Errorf("encode event %s: %w", name, err))
	}
	return ex.enqueue(b, &sentinels.Event{ID: string(id) + "/" + word + "/" + key, Name: name, Source: sentinels.EngineSource(id), Time: time.Now().UTC(), Data: raw})
}

// enqueue enqueues a batch, with the event that its records cause in the same commit.
func (ex *Executor) enqueue(b store.Batch, event *sentinels.Event) (ticket *store.Ticket) {
	if event == nil {
		return ex.opt.Store.Enqueue(b)
	}
	err := ex.svc.RunEvents.Append(*event, func(puts ...store.Put) *store.Ticket {
		b.Puts = append(b.Puts, puts...)
		ticket = ex.opt.Store.Enqueue(b)
		return ticket
	})
	if err != nil { // the event cannot be encoded, which is a bug
		panic(fmt.Errorf("event of a run: %w", err))
	}
	return ticket
}
