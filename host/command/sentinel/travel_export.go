package sentinel

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// An exportIn is what sentinel/export takes.
type exportIn struct {
	SentinelID string `json:"sentinelId,omitempty" jsonschema:"id of the sentinel, or of one of its runs"`
	All        bool   `json:"all,omitempty" jsonschema:"every sentinel, as a bundle that sentinel/import takes"`
	History    bool   `json:"history,omitempty" jsonschema:"with the revisions that are kept, as a bundle that sentinel/import takes"`
}

// An exportOut is a definition with what is known of it, or a bundle, or both.
type exportOut struct {
	SentinelID sentinels.ID    `json:"sentinelId,omitempty"`
	Run        sentinels.RunID `json:"run,omitempty" jsonschema:"the run whose definition this is"`
	Name       string          `json:"name,omitempty"`
	// A pointer, because 0 says something and has to be seen.
	Revision   *int            `json:"revision,omitempty" jsonschema:"0 for a run of a definition that is not stored; not given for all"`
	Edit       int             `json:"edit,omitempty" jsonschema:"number of the run's own edit, made on that revision"`
	Hash       string          `json:"hash,omitempty"`
	Definition json.RawMessage `json:"definition,omitempty"`
	// A bundle has nothing but these three.
	Format     int         `json:"format,omitempty" jsonschema:"of the bundle"`
	ExportedAt *time.Time  `json:"exportedAt,omitempty"`
	Sentinels  []traveller `json:"sentinels,omitempty"`
}

// export shows the definition that a sentinel, or the next iteration of a run,
// has; with all or with its history it is a bundle.
func (f family) export(_ context.Context, _ *command.Call, in exportIn) (exportOut, error) {
	// Neither would be a guess, both a contradiction.
	if in.All != (in.SentinelID == "") {
		return exportOut{}, &abi.Error{Code: abi.BadFields, Field: "sentinelId", Message: "export sentinel: give either sentinelId or all"}
	}
	if in.All || in.History {
		return f.pack(in)
	}
	t, err := f.find(in.SentinelID)
	if err != nil {
		return exportOut{}, err
	}
	v, err := f.read(t)
	if err != nil {
		return exportOut{}, err
	}
	text, err := v.def.MarshalJSON()
	return exportOut{SentinelID: t.id, Run: t.run, Name: v.def.Name, Revision: &v.revision, Edit: v.edit, Hash: v.hash, Definition: text}, err
}

// pack makes a bundle. Definitions go as they are stored: one whose step type is
// gone here may find it where it is taken.
func (f family) pack(in exportIn) (exportOut, error) {
	now := time.Now().UTC()
	// No sentinel at all is a list of none: a backup of an empty store is one.
	out := exportOut{Format: bundleFormat, ExportedAt: &now, Sentinels: []traveller{}}
	stored, err := f.chosen(in)
	if err != nil {
		return exportOut{}, err
	}
	size := 0
	for _, s := range stored {
		t := traveller{SentinelID: s.ID, Definition: s.Definition}
		if in.History {
			if t.Revisions, err = f.historyOf(s); err != nil {
				return exportOut{}, err
			}
		}
		// Counted while it grows, so that a large store is not in memory whole before
		// it is refused.
		size += len(s.Definition)
		for _, r := range t.Revisions {
			size += len(r.Definition)
		}
		if size > maxBundle {
			return exportOut{}, &abi.Error{Code: abi.Limit, Message: fmt.Sprintf("export sentinels: they have more than %d bytes", maxBundle),
				Hint: "export them one by one, or without their history"}
		}
		out.Sentinels = append(out.Sentinels, t)
	}
	// Whoever read the answer before there was history finds all of it there.
	if len(stored) == 1 && !in.All {
		s := stored[0]
		out.SentinelID, out.Name, out.Revision, out.Hash, out.Definition = s.ID, s.Name, &s.Revision, s.Hash, s.Definition
	}
	return out, nil
}

// chosen returns the sentinels that in names.
// Deleted sentinels are in no bundle. Their history is for those who have the
// store; elsewhere there is nothing that they could come back to.
func (f family) chosen(in exportIn) ([]runtime.Stored, error) {
	if in.All {
		return f.rt.Definitions()
	}
	t, err := f.find(in.SentinelID)
	if err != nil {
		return nil, err
	}
	if t.run != "" {
		// Its own edits are in its journal and mean nothing without it.
		return nil, &abi.Error{Code: abi.BadFields, Field: "history", Message: fmt.Sprintf("export run %s: a run has no revisions", t.run),
			Hint: fmt.Sprintf("export sentinel %q, or the run without history", t.id)}
	}
	s, err := f.rt.Definition(t.id)
	return []runtime.Stored{s}, err
}

// historyOf returns the kept revisions up to s, the oldest first. Newer ones
// that came meanwhile do not belong to it.
func (f family) historyOf(s runtime.Stored) ([]travelled, error) {
	// One by one, not in one look: a revision may have a megabyte.
	lines, err := f.rt.Revisions(s.ID)
	if err != nil {
		return nil, err
	}
	var out []travelled
	for _, line := range slices.Backward(lines) {
		// The newest is the one that was read first, also if an edit came since:
		// a bundle ends with the definition that it shows.
		r := s
		if line.Revision > s.Revision {
			continue
		}
		if line.Revision < s.Revision {
			if r, err = f.rt.Revision(s.ID, line.Revision); abi.CodeOf(err) == abi.NotFound {
				continue // an edit just now has pushed it out
			}
			if err != nil {
				return nil, err
			}
		}
		out = append(out, travelled{r.Revision, r.Name, r.Hash, r.SavedAt, r.By, r.Note, r.Deleted, r.Definition})
	}
	return out, nil
}
