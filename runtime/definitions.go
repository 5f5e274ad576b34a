package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Stored is one revision of a definition in the store.
type Stored struct {
	ID         sentinels.ID    `json:"id"`
	Revision   int             `json:"revision"` // counts from 1
	Hash       string          `json:"hash"`
	SavedAt    time.Time       `json:"savedAt"`
	Definition json.RawMessage `json:"definition"`
}

// Decode reads a definition against the step types that are live, with
// conditions and cron expressions checked and plugins asked about their steps,
// and reports every problem.
func (rt *Runtime) Decode(src []byte, file string) (*sentinels.Definition, sentinels.Problems) {
	def, problems := rt.decode(src, file)
	if len(problems) > 0 {
		return def, problems
	}
	if problems = rt.askPlugins(def); len(problems) > 0 {
		return nil, problems.Locate(file, src)
	}
	return def, nil
}

// decode reads without asking plugins: what is stored was asked about before.
func (rt *Runtime) decode(src []byte, file string) (*sentinels.Definition, sentinels.Problems) {
	return sentinels.Decode(src, sentinels.DecodeOptions{
		File: file, Types: rt.Types(), CheckCron: rt.opt.CheckCron, CheckExpression: rt.cond.Check,
	})
}

// Save stores def as a new revision of its id. expect is the revision the edit
// was made on, 0 for a new definition and -1 for whatever is there; another
// one is the error conflict. Saving what is there already changes nothing.
func (rt *Runtime) Save(ctx context.Context, def *sentinels.Definition, expect int) (Stored, error) {
	if def.ID == "" {
		return Stored{}, errf(abi.BadFields, "save definition: it has no id")
	}
	head, err := rt.Definition(def.ID)
	found := err == nil
	if err != nil && abi.CodeOf(err) != abi.NotFound {
		return Stored{}, err
	}
	if expect >= 0 && expect != head.Revision {
		return Stored{}, errf(abi.Conflict, "save definition %q: made on revision %d, the current one is %d", def.ID, expect, head.Revision)
	}
	if found && head.Hash == def.Hash() {
		return head, nil
	}
	canonical, err := json.Marshal(def)
	if err != nil {
		return Stored{}, fmt.Errorf("save definition %q: %w", def.ID, err)
	}
	next := Stored{ID: def.ID, Revision: head.Revision + 1, Hash: def.Hash(), SavedAt: time.Now().UTC(), Definition: canonical}
	value, err := json.Marshal(next)
	if err != nil {
		return Stored{}, err
	}
	on := head.Revision
	check := func(current []byte, exists bool) error {
		var now Stored
		if exists {
			if err := json.Unmarshal(current, &now); err != nil {
				return err
			}
		}
		if now.Revision != on {
			return errf(abi.Conflict, "save definition %q: another edit came between, the current revision is %d", def.ID, now.Revision)
		}
		return nil
	}
	b := store.Batch{Puts: []store.Put{
		{Bucket: bucketDefinitions, Key: []byte(def.ID), Value: value, Check: check},
		{Bucket: bucketDefinitions, Key: revisionKey(def.ID, next.Revision), Value: value},
	}}
	if old := next.Revision - rt.limits.KeepRevisions; old > 0 {
		b.Puts = append(b.Puts, store.Put{Bucket: bucketDefinitions, Key: revisionKey(def.ID, old), Delete: true})
	}
	if err := rt.db.Enqueue(b).Wait(ctx); err != nil {
		return Stored{}, err
	}
	return next, nil
}

func revisionKey(id sentinels.ID, revision int) []byte {
	return fmt.Appendf(nil, "%s/%09d", id, revision)
}

// Definition returns the newest revision of a definition, or not_found.
func (rt *Runtime) Definition(id sentinels.ID) (Stored, error) {
	raw, ok, err := rt.db.Get(bucketDefinitions, []byte(id))
	if err != nil {
		return Stored{}, err
	}
	if !ok {
		e := errf(abi.NotFound, "no sentinel has the id %q", id)
		if near := sentinels.Suggest(string(id), rt.definitionIDs()); len(near) > 0 {
			e.Hint = fmt.Sprintf("did you mean %q?", near[0])
		}
		return Stored{}, e
	}
	var s Stored
	if err := json.Unmarshal(raw, &s); err != nil {
		return Stored{}, fmt.Errorf("read definition %q: %w", id, err)
	}
	return s, nil
}

// Decoded returns the definition that s holds.
func (rt *Runtime) Decoded(s Stored) (*sentinels.Definition, error) {
	def, problems := rt.decode(s.Definition, string(s.ID))
	if err := problemsError(problems); err != nil {
		return nil, err
	}
	return def, nil
}

// Definitions returns the newest revision of every definition, by id.
func (rt *Runtime) Definitions() ([]Stored, error) {
	var out []Stored
	var bad error
	err := rt.db.Scan(bucketDefinitions, nil, nil, false, func(key, value []byte) bool {
		if strings.ContainsRune(string(key), '/') {
			return true
		}
		var s Stored
		if err := json.Unmarshal(value, &s); err != nil {
			bad = errors.Join(bad, fmt.Errorf("read definition %q: %w", key, err))
			return true
		}
		out = append(out, s)
		return true
	})
	return out, errors.Join(err, bad)
}

func (rt *Runtime) definitionIDs() []string {
	all, _ := rt.Definitions()
	ids := make([]string, 0, len(all))
	for _, s := range all {
		ids = append(ids, string(s.ID))
	}
	return ids
}

// problemsError turns the errors among problems into one error, or nil.
func problemsError(problems sentinels.Problems) error {
	if len(problems) == 0 {
		return nil
	}
	return problems
}
