package execution

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/revision"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// maxAhead bounds the sentinels that a question looks at for what its run and those above it may start.
const maxAhead = 1000

// ahead returns the stored revisions that a run, or one above it, may start by its definition, at any depth, and that an agent or a model
// made and no person accepted. Who approves what follows approves these, as a later change of them is not started, see
// [liveRun.checkApproved]. What steps of these runs made themselves is theirs.
func (ex *Executor) ahead(id sentinels.RunID) (list []revision.Stored, err error) {
	seen := map[sentinels.ID]bool{}
	var next []sentinels.ID
	refers := func(text json.RawMessage) {
		// One that cannot be read starts nothing.
		_ = sentinels.EachObject(text, func(_ map[string]any, of sentinels.ID) {
			if of != "" && !seen[of] && len(seen) < maxAhead {
				seen[of] = true
				next = append(next, of)
			}
		})
	}
	own := map[string]bool{}
	var named map[sentinels.ID]journal.Value
	err = ex.upwards(id, func(info run.Info) error {
		own[ownStep+string(info.Sentinel)], own[ownModel+string(info.Sentinel)] = true, true
		used, begin, err := ex.runDefinition(info.ID)
		if err != nil {
			return err
		}
		if r := ex.live(info.ID); r != nil {
			used.def = r.Definition() // not that of the next iteration
		}
		if named == nil {
			named = begin.Named
		}
		text, err := json.Marshal(used.def)
		if err == nil {
			refers(text)
		}
		return err
	})
	for ; err == nil && len(next) > 0; next = next[1:] {
		if _, given := named[next[0]]; given { // at the start
			continue
		}
		stored, err := ex.opt.Definitions.Head(next[0])
		if err != nil {
			return nil, err
		}
		if stored.Within != nil && !stored.Deleted && !own[stored.By] {
			list = append(list, stored)
		}
		refers(stored.Definition)
	}
	return list, err
}

// What the author of a revision is that a step or a model of a sentinel made, before the id of that sentinel.
const (
	ownStep  = "step of sentinel "
	ownModel = "model of sentinel "
)

// changesAhead returns the differences of revisions to the newest ones of persons before them, without secrets.
func (ex *Executor) changesAhead(list []revision.Stored) string {
	var all strings.Builder
	for _, s := range list {
		fmt.Fprintf(&all, "revision %d of %s by %s, which it may start:\n", s.Revision, s.ID, EmitsFor(s))
		before := 0
		if person, err := ex.opt.Definitions.OfPerson(s.ID, s.Revision); err == nil {
			before = person.Revision
		}
		all.WriteString(ex.difference(s.ID, before, s.Revision, all.Len()))
	}
	return all.String()
}
