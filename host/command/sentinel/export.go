package sentinel

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

type exportIn struct {
	SentinelID string `json:"sentinelId,omitempty" jsonschema:"id of the sentinel, or of one of its runs"`
	All        bool   `json:"all,omitempty" jsonschema:"every sentinel, as a bundle"`
	History    bool   `json:"history,omitempty" jsonschema:"with the revisions that are kept, as a bundle"`
}

// exportOut is the definition of one sentinel or run, a bundle, or both.
type exportOut struct {
	SentinelID sentinels.ID    `json:"sentinelId,omitempty"`
	Run        sentinels.RunID `json:"run,omitempty" jsonschema:"the run whose definition this is"`
	Name       string          `json:"name,omitempty"`
	Revision   *int            `json:"revision,omitempty" jsonschema:"0 for a run of a definition that is not stored; absent for all"`
	Edit       int             `json:"edit,omitempty" jsonschema:"number of the run's own edit, made on that revision"`
	Hash       string          `json:"hash,omitempty"`
	Definition json.RawMessage `json:"definition,omitempty"`
	Unaccepted bool            `json:"unaccepted,omitempty" jsonschema:"a model or an agent made the revision, and no person has accepted it"`
	Bundle     *bundle         `json:"bundle,omitempty" jsonschema:"with all or history: what sentinel/import accepts"`
}

// export returns the newest definition of a sentinel, or the one that the next iteration
// of a run uses; with all or history also a bundle.
func (f family) export(_ context.Context, call *command.Call, in exportIn) (out exportOut, err error) {
	if in.All != (in.SentinelID == "") {
		return exportOut{}, &abi.Error{Code: abi.BadFields, Field: "sentinelId", Message: "export sentinel: want either sentinelId or all"}
	}
	var stored []runtime.Stored
	if in.All {
		stored, err = f.exportAll(call)
	} else {
		stored, err = f.exportOne(call, in, &out)
	}
	if err == nil && (in.All || in.History) {
		out.Bundle, err = f.newBundle(call, stored, in.History)
	}
	return out, err
}

// exportAll returns all definitions, no more than a bundle may have and one, which newBundle refuses.
func (f family) exportAll(call *command.Call) (stored []runtime.Stored, err error) {
	var size int
	var refused error
	err = f.rt.EachDefinition("", func(s runtime.Stored) bool {
		refused = call.Count(int64(len(s.Definition)))
		stored = append(stored, s)
		size += len(s.Definition)
		return size <= maxBundle && refused == nil
	})
	return stored, cmp.Or(refused, err)
}

func (f family) exportOne(call *command.Call, in exportIn, out *exportOut) ([]runtime.Stored, error) {
	t, err := f.find(in.SentinelID)
	if err != nil {
		return nil, err
	}
	if t.run == "" {
		// The stored text: a definition whose plugin was removed can still be exported.
		s, err := f.rt.Definition(t.id)
		err = cmp.Or(err, call.Count(int64(len(s.Definition))))
		*out = exportOut{
			SentinelID: s.ID, Name: s.Name, Revision: &s.Revision, Hash: s.Hash, Definition: s.Definition, Unaccepted: s.Within != nil,
		}
		return []runtime.Stored{s}, err
	}
	if in.History {
		return nil, &abi.Error{Code: abi.BadFields, Field: "history", Message: fmt.Sprintf("export run %s: a run has no revisions", t.run),
			Hint: fmt.Sprintf("export sentinel %q, or the run without history", t.id)}
	}
	v, err := f.read(t)
	if err != nil {
		return nil, err
	}
	text, err := v.def.MarshalJSON()
	err = cmp.Or(err, call.Count(int64(len(text))))
	*out = exportOut{SentinelID: t.id, Run: t.run, Name: v.def.Name, Revision: &v.revision, Edit: v.edit, Hash: v.hash, Definition: text}
	return nil, err
}

// newBundle returns a bundle of stored sentinels. Deleted sentinels are not in bundles.
func (f family) newBundle(call *command.Call, stored []runtime.Stored, history bool) (*bundle, error) {
	b := &bundle{Format: bundleFormat, Sentinels: []bundledSentinel{}}
	needs, size := newRequirements(), 0
	for _, s := range stored {
		one := bundledSentinel{SentinelID: s.ID, Within: s.Within, Definition: s.Definition}
		if _, err := needs.read(s); err != nil {
			return nil, fmt.Errorf("export sentinel %q: %w", s.ID, err)
		}
		size += len(s.Definition)
		if history {
			var err error
			if one.Revisions, err = f.historyOf(call, s); err != nil {
				return nil, err
			}
		}
		for _, r := range one.Revisions {
			size += len(r.Definition)
		}
		if size > maxBundle {
			return nil, &abi.Error{Code: abi.Limit, Message: fmt.Sprintf("export sentinels: they have more than %d bytes", maxBundle),
				Hint: "export them one by one, or without their history"}
		}
		b.Sentinels = append(b.Sentinels, one)
	}
	for _, p := range needs.plugins(f.rt) {
		b.Plugins = append(b.Plugins, bundledPlugin{p.Name, p.Version, p.Digest})
	}
	return b, nil
}

// historyOf returns the kept revisions up to s, the oldest first. Origins are left out:
// they are paths of this machine.
func (f family) historyOf(call *command.Call, s runtime.Stored) ([]bundledRevision, error) {
	lines, err := f.rt.Revisions(s.ID)
	if err != nil {
		return nil, err
	}
	var out []bundledRevision
	for _, line := range slices.Backward(lines) {
		r := s // a bundle ends with the definition that it has, also after an edit meanwhile
		if line.Revision > s.Revision {
			continue
		}
		if line.Revision < s.Revision {
			if r, err = f.rt.Revision(s.ID, line.Revision); abi.CodeOf(err) == abi.NotFound {
				continue // removed by an edit meanwhile
			}
			if err = cmp.Or(err, call.Count(int64(len(r.Definition)))); err != nil {
				return nil, err
			}
		}
		r.Origin = ""
		out = append(out, bundledRevision{fullRevision{lineOf(r), r.Definition}, r.Within})
	}
	return out, nil
}
