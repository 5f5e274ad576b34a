package sentinel

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A revisionsIn is what sentinel/revisions takes.
type revisionsIn struct {
	SentinelID sentinels.ID `json:"sentinelId" jsonschema:"id of the sentinel"`
	Limit      int          `json:"limit,omitempty" jsonschema:"the newest so many; all that are kept if not given" minimum:"1"`
}

type revisionsOut struct {
	SentinelID sentinels.ID   `json:"sentinelId"`
	Revisions  []revisionLine `json:"revisions" jsonschema:"the newest first"`
}

// A revisionLine is one entry of the history: without the definition, which
// sentinel/revision shows.
type revisionLine struct {
	Revision int       `json:"revision"`
	Name     string    `json:"name,omitempty"`
	Hash     string    `json:"hash,omitempty"`
	SavedAt  time.Time `json:"savedAt"`
	Origin   string    `json:"origin,omitempty" jsonschema:"the file it lives in"`
	By       string    `json:"by,omitempty" jsonschema:"who made it"`
	Note     string    `json:"note,omitempty" jsonschema:"why"`
	Deleted  bool      `json:"deleted,omitempty" jsonschema:"with this revision the sentinel was deleted"`
}

func lineOf(s runtime.Stored) revisionLine {
	return revisionLine{s.Revision, s.Name, s.Hash, s.SavedAt, s.Origin, s.By, s.Note, s.Deleted}
}

// revisions lists the history. That of a deleted sentinel is there, too: it is
// what a rollback needs.
func (f family) revisions(_ context.Context, _ *command.Call, in revisionsIn) (revisionsOut, error) {
	kept, err := f.rt.Revisions(in.SentinelID)
	if err != nil {
		return revisionsOut{}, err
	}
	out := revisionsOut{SentinelID: in.SentinelID, Revisions: []revisionLine{}}
	for _, s := range kept {
		if in.Limit == 0 || len(out.Revisions) < in.Limit {
			out.Revisions = append(out.Revisions, lineOf(s))
		}
	}
	return out, nil
}

// A revisionIn is what sentinel/revision takes.
type revisionIn struct {
	SentinelID sentinels.ID `json:"sentinelId" jsonschema:"id of the sentinel"`
	Revision   int          `json:"revision" jsonschema:"the revision" minimum:"1"`
}

// fullRevision is one revision with its definition, as in a bundle. A deletion has none.
type fullRevision struct {
	revisionLine
	Definition json.RawMessage `json:"definition,omitempty"`
}

type revisionOut struct {
	SentinelID sentinels.ID `json:"sentinelId"`
	fullRevision
}

// revision shows one revision whole, as it was stored.
func (f family) revision(_ context.Context, call *command.Call, in revisionIn) (revisionOut, error) {
	s, err := f.rt.Revision(in.SentinelID, in.Revision)
	err = cmp.Or(err, call.Count(int64(len(s.Definition))))
	return revisionOut{in.SentinelID, fullRevision{lineOf(s), s.Definition}}, err
}

// A diffIn is what sentinel/diff takes. Without revisions it is what the newest
// one changed.
type diffIn struct {
	SentinelID string `json:"sentinelId" jsonschema:"id of the sentinel, or of a run: then its own edit is compared with the revision that was made on"`
	From       int    `json:"from,omitempty" jsonschema:"the one before to if not given" minimum:"1"`
	To         int    `json:"to,omitempty" jsonschema:"the newest if not given" minimum:"1"`
}

// A diffOut says the same twice: as changes for programs, as text for people.
type diffOut struct {
	SentinelID sentinels.ID       `json:"sentinelId"`
	Run        sentinels.RunID    `json:"run,omitempty"`
	From       int                `json:"from"`
	To         int                `json:"to,omitempty"`
	Edit       int                `json:"edit,omitempty" jsonschema:"number of the run's own edit that is compared"`
	Changes    []sentinels.Change `json:"changes"`
	Text       string             `json:"text" jsonschema:"the difference as people read it, in the unified form; empty if there is none"`
}

// diff shows what two revisions of a sentinel, or a run and its sentinel, do
// not have in common. A deletion is an empty text.
func (f family) diff(_ context.Context, call *command.Call, in diffIn) (diffOut, error) {
	if _, err := f.rt.Revisions(sentinels.ID(in.SentinelID)); err != nil {
		if t, none := f.find(in.SentinelID); none == nil && t.run != "" {
			return f.diffRun(call, t, in)
		}
		return diffOut{}, err
	}
	id := sentinels.ID(in.SentinelID)
	if in.To == 0 {
		kept, err := f.rt.Revisions(id)
		if err != nil {
			return diffOut{}, err
		}
		in.To = kept[0].Revision
	}
	out := diffOut{SentinelID: id, From: in.From, To: in.To}
	if in.From == 0 {
		out.From = in.To - 1
	}
	var before *sentinels.Definition
	var err error
	if out.From > 0 { // before the first one there was nothing
		if before, err = f.at(call, id, out.From); err != nil {
			return diffOut{}, err
		}
	}
	after, err := f.at(call, id, out.To)
	if err != nil {
		return diffOut{}, err
	}
	return out.with(before, after, fmt.Sprintf("%s@%d", id, out.From), fmt.Sprintf("%s@%d", id, out.To)), nil
}

// diffRun compares what the next iteration of a run uses with a revision of its
// sentinel.
func (f family) diffRun(call *command.Call, t found, in diffIn) (diffOut, error) {
	v, err := f.read(t)
	if err == nil {
		var text []byte
		if text, err = v.def.MarshalJSON(); err == nil {
			err = call.Count(2 * int64(len(text)))
		}
	}
	if err != nil {
		return diffOut{}, err
	}
	if v.revision == 0 {
		return diffOut{}, &abi.Error{Code: abi.BadFields, Field: "sentinelId", Message: fmt.Sprintf("run %s is of a definition that is not stored: there is nothing to compare with", t.run)}
	}
	out := diffOut{SentinelID: t.id, Run: t.run, From: v.revision, Edit: v.edit}
	if in.From != 0 {
		out.From = in.From
	}
	before, err := f.at(call, t.id, out.From)
	if err != nil {
		return diffOut{}, err
	}
	return out.with(before, v.def, fmt.Sprintf("%s@%d", t.id, out.From), "run "+string(t.run)), nil
}

// with adds the difference. With nothing on one side there are no changes to
// list, only a text that comes or goes.
func (out diffOut) with(before, after *sentinels.Definition, nameA, nameB string) diffOut {
	out.Changes = []sentinels.Change{}
	if before != nil && after != nil {
		out.Changes = append(out.Changes, sentinels.Diff(before, after)...)
	}
	out.Text = sentinels.DiffText(before, after, nameA, nameB)
	return out
}

// at returns one revision, nil for a deletion.
func (f family) at(call *command.Call, id sentinels.ID, n int) (*sentinels.Definition, error) {
	s, err := f.rt.Revision(id, n)
	if err != nil || s.Deleted {
		return nil, err
	}
	if err := call.Count(2 * int64(len(s.Definition))); err != nil { // in the text and in the changes
		return nil, err
	}
	return f.rt.Decoded(s)
}

// A rollbackIn is what sentinel/rollback takes.
type rollbackIn struct {
	SentinelID sentinels.ID `json:"sentinelId" jsonschema:"id of the sentinel; also of one that is deleted"`
	To         int          `json:"to" jsonschema:"the revision whose content comes back" minimum:"1"`
	Revision   *int         `json:"revision,omitempty" jsonschema:"revision that was last seen, 0 for a deleted one; another is a conflict" minimum:"0"`
	Note       string       `json:"note,omitempty" jsonschema:"why, for the history"`
}

// rollback makes a new revision of an old one, so that the history only grows
// and a rollback can be undone by another.
func (f family) rollback(ctx context.Context, call *command.Call, in rollbackIn) (edited, error) {
	if err := f.sync(ctx, in.SentinelID); err != nil {
		return edited{}, err
	}
	if err := f.keepsGate(call, string(in.SentinelID)); err != nil {
		return edited{}, err
	}
	opt := runtime.SaveOptions{Expect: runtime.AnyRevision, Run: causingRun(call), By: who(call), Note: in.Note, Within: call.Bound()}
	if in.Revision != nil {
		opt.Expect = *in.Revision
	}
	s, err := f.rt.Rollback(ctx, in.SentinelID, in.To, opt)
	if err != nil {
		return edited{}, problemsOf(err)
	}
	def, err := f.rt.Decoded(s)
	if err != nil {
		return edited{}, err
	}
	return edited{SentinelID: s.ID, Name: def.Name, Revision: s.Revision, Hash: s.Hash, Steps: len(def.Steps), Warning: joinLines(joinLines(f.writeBack(ctx, s), f.exceeds(s, def)), f.withoutFile(s))}, nil
}

// withoutFile says that a rollback of a deleted sentinel does not restore the file that it was in: its
// comments are lost, and a person may have put another in its place.
func (f family) withoutFile(s runtime.Stored) string {
	gone, err := f.rt.Revision(s.ID, s.Revision-1)
	if err != nil || !gone.Deleted || gone.Origin == "" {
		return ""
	}
	return fmt.Sprintf("its file %s is not written again: sentinel show %s > FILE writes one", gone.Origin, s.ID)
}
