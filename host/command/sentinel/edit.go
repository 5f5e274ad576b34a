package sentinel

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Definitions keep files and the store from disagreeing. Sync and WriteBack are
// called with definitions that live in no file, too, and do nothing then.
type Definitions interface {
	// Sync reads the current file of the definition, so that an edit is
	// made on that and a stale one is refused.
	Sync(ctx context.Context, id sentinels.ID) error
	// WriteBack writes a new revision to its file; one that is Deleted removes it.
	WriteBack(ctx context.Context, s runtime.Stored) error
	// Problems returns what is wrong with files, each problem with its file.
	Problems() sentinels.Problems
}

// A found is what a sentinelId leads to: a stored sentinel, or one run.
type found struct {
	id  sentinels.ID
	run sentinels.RunID // empty for the stored sentinel
}

// find tells the two apart. A sentinel goes first: its id is the author's, and
// no sentinel can get that of a run.
func (f family) find(id string) (found, error) {
	if id == "" {
		return found{}, &abi.Error{Code: abi.BadFields, Field: "sentinelId", Message: "neither a sentinel nor a run is named"}
	}
	_, err := f.rt.Definition(sentinels.ID(id))
	if err == nil {
		return found{id: sentinels.ID(id)}, nil
	}
	if abi.CodeOf(err) != abi.NotFound {
		return found{}, err
	}
	if info, none := f.rt.Status(sentinels.RunID(id)); none == nil {
		return found{info.Sentinel, info.ID}, nil
	}
	return found{}, err
}

// A version is the definition that something has now: for a run what its next
// iteration uses.
type version struct {
	def            *sentinels.Definition
	revision, edit int
	hash           string
}

// read returns what is edited, shown or compared under the name that was found.
func (f family) read(t found) (version, error) {
	if t.run != "" {
		v, err := f.rt.RunDefinition(t.run)
		if err != nil {
			return version{}, err
		}
		return version{v.Definition, v.Revision, v.Edit, v.Definition.Hash()}, nil
	}
	s, err := f.rt.Definition(t.id)
	if err != nil {
		return version{}, err
	}
	def, err := f.rt.Decoded(s)
	return version{def, s.Revision, 0, s.Hash}, err
}

// who names the caller for the history. A step or a model cannot pass for a
// person.
func who(call *command.Call) string {
	if !call.ForAgent() && (call.By == command.ByStep || call.By == command.ByModel) {
		return string(call.By) + " of sentinel " + string(call.Sentinel)
	}
	return call.Who()
}

// causingRun returns the run whose step makes a call, or from below whose step it comes over
// the API; empty for none.
func causingRun(call *command.Call) sentinels.RunID { return cmp.Or(call.Run, call.Sender) }

// refused is the error for problems of a definition.
func refused(problems sentinels.Problems) error {
	return &abi.Error{Code: abi.BadFields, Permanent: true, Message: problems.Error()}
}

// refusedParam is the error for problems of a definition or step that was given as
// the parameter name, "" for all parameters together. A parameter that is a value
// was encoded again on its way, so lines and columns of the text that was read
// mean nothing to the caller; paths do. In a string the caller's own lines are
// still there.
func refusedParam(name string, raw json.RawMessage, problems sentinels.Problems) error {
	shown := slices.Clone(problems)
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte{'"'}) {
		for i := range shown {
			shown[i].Line, shown[i].Column = 0, 0
		}
	}
	field := problems[0].Path
	if name != "" && (field == "" || field[0] == '[') {
		field = name + field
	} else if name != "" {
		field = name + "." + field
	}
	return &abi.Error{Code: abi.BadFields, Permanent: true, Field: field, Message: shown.Error()}
}

// sync reads the file of a definition before it is edited; a host
// without watched files has none. It comes before the first look at the
// revision, or a stale edit would pass.
func (f family) sync(ctx context.Context, id sentinels.ID) error {
	if f.opt.Definitions == nil {
		return nil
	}
	return f.opt.Definitions.Sync(ctx, id)
}

// writeBack returns a warning in place of an error: the revision is in the
// store, and repeating the edit would make it twice.
func (f family) writeBack(ctx context.Context, s runtime.Stored) string {
	if f.opt.Definitions == nil {
		return ""
	}
	if s.Within != nil && s.Origin != "" {
		return fmt.Sprintf("revision %d is stored, and its file stays as it is until a person accepts the revision, see sentinel inbox",
			s.Revision)
	}
	if err := f.opt.Definitions.WriteBack(ctx, s); err != nil {
		return fmt.Sprintf("revision %d is stored, but its file is not written: %v", s.Revision, err)
	}
	return ""
}

// An editIn is what all edits have in common.
type editIn struct {
	SentinelID string `json:"sentinelId" jsonschema:"id of the sentinel, or of one run: then that run alone is edited"`
	Revision   *int   `json:"revision,omitempty" jsonschema:"revision of the sentinel that the edit was made on; another one is a conflict" minimum:"1"`
	Hash       string `json:"hash,omitempty" jsonschema:"hash of the definition that the edit was made on; another one is a conflict"`

	whole bool // the edit gives all of the definition
}

// An edited is what all edits answer.
type edited struct {
	SentinelID sentinels.ID    `json:"sentinelId"`
	Run        sentinels.RunID `json:"run,omitempty" jsonschema:"the one run that was edited"`
	Name       string          `json:"name"`
	Revision   int             `json:"revision" jsonschema:"of the sentinel; of a run's own edit the one it was made on, 0 if its definition is not stored"`
	Edit       int             `json:"edit,omitempty" jsonschema:"number of the run's own edit"`
	Hash       string          `json:"hash"`
	Steps      int             `json:"steps" jsonschema:"how many steps there are now, without nested ones"`
	Address    string          `json:"address,omitempty" jsonschema:"the step that was touched, as it is addressed now"`
	Note       string          `json:"note,omitempty" jsonschema:"what the edit does not do"`
	Warning    string          `json:"warning,omitempty" jsonschema:"what did not work beside the edit itself"`
	// Problems are those that did not prevent the edit.
	Problems sentinels.Problems `json:"problems,omitempty" jsonschema:"errors that the sentinel had before, as warnings, and what it needs that is not available here"`
}

// sameHash is the error conflict if the definition has another hash than the edit names. It is called within the edit,
// so that it holds for what the edit is made on.
func (in editIn) sameHash(call *command.Call, op string, d *sentinels.Definition) error {
	if in.Hash == "" || in.Hash == call.HashOf(d.Hash()) {
		return nil
	}
	return &abi.Error{Code: abi.Conflict, Field: "hash", Hint: "read the definition again and repeat the edit on it",
		Message: fmt.Sprintf("%s: definition conflict: have hash %.12s, current is %.12s", op, in.Hash, call.HashOf(d.Hash()))}
}

// An editor makes another definition of one; it may be called more than once.
type editor func(*sentinels.Definition) (*sentinels.Definition, error)

// edit makes an edit of what in names. The current iteration of every run is
// untouched; the next one uses the change.
func (f family) edit(ctx context.Context, call *command.Call, in editIn, note string, fn editor) (edited, error) {
	t, err := f.find(in.SentinelID)
	if err != nil {
		return edited{}, err
	}
	if t.run != "" {
		return f.editRun(ctx, call, t, in, note, fn)
	}
	if err := f.sync(ctx, t.id); err != nil {
		return edited{}, err
	}
	if err := f.keepsGate(call, string(t.id)); err != nil {
		return edited{}, err
	}
	before, err := f.rt.Definition(t.id) // only to say whether there was a change
	if err != nil {
		return edited{}, err
	}
	opt := runtime.SaveOptions{Expect: runtime.AnyRevision, Run: causingRun(call), By: who(call), Note: note, Within: call.Bound(), Whole: in.whole && call.By == command.ByUser}
	if in.Revision != nil {
		opt.Expect = *in.Revision
	}
	s, err := f.rt.Edit(ctx, t.id, opt, func(d *sentinels.Definition) (*sentinels.Definition, error) {
		if err := in.sameHash(call, fmt.Sprintf("edit sentinel %q", t.id), d); err != nil {
			return nil, err
		}
		return fn(d)
	})
	if err != nil {
		return edited{}, problemsOf(err)
	}
	def := sentinels.Lenient(s.Definition, f.rt.DecodeOptions(""))
	out := edited{SentinelID: s.ID, Name: def.Name, Revision: s.Revision, Hash: s.Hash, Steps: len(def.Steps)}
	if s.Revision == before.Revision {
		out.Note = "the sentinel was like that already"
	}
	out.Warning, out.Problems = joinLines(f.writeBack(ctx, s), f.exceeds(s, def)), f.remaining(ctx, givenText{src: sentinels.Encode(def)})
	return out, nil
}

// editRun edits one run. There is no file to ask or to write: what a run alone
// follows is in its journal.
func (f family) editRun(ctx context.Context, call *command.Call, t found, in editIn, note string, fn editor) (edited, error) {
	if in.Revision != nil {
		return edited{}, &abi.Error{Code: abi.BadFields, Field: "revision", Message: fmt.Sprintf("edit run %s: a run has no revisions", t.run),
			Hint: "give the hash that its definition had"}
	}
	info, err := f.rt.Status(t.run)
	if err != nil {
		return edited{}, err
	}
	if err := f.keepsGatesAround(call, info, false, func(runtime.RunInfo) bool { return false }); err != nil {
		return edited{}, err
	}
	e, err := f.rt.EditRun(ctx, t.run, runtime.EditRunOptions{By: who(call), Note: note, Within: call.Bound()}, func(d *sentinels.Definition) (*sentinels.Definition, error) {
		if err := in.sameHash(call, fmt.Sprintf("edit run %s", t.run), d); err != nil {
			return nil, err
		}
		return fn(d)
	})
	if err != nil {
		return edited{}, problemsOf(err)
	}
	out := edited{SentinelID: t.id, Run: t.run, Name: e.Definition.Name, Revision: e.Revision, Edit: e.Edit, Hash: e.Hash, Steps: len(e.Definition.Steps)}
	out.Problems = f.remaining(ctx, givenText{src: sentinels.Encode(e.Definition)})
	if len(e.Kept) > 0 {
		out.Warning = strings.Join(e.Kept, ", ") + ": only a person raises limits: those of the run stay as they were"
	}
	// What a person may have expected and does not happen.
	switch {
	case e.Definition.Loop.Type == sentinels.LoopOnce:
		out.Note = "the run has one iteration, which continues unchanged; no iteration will use the edit"
	case e.Revision != 0:
		out.Note = fmt.Sprintf("only this run was edited and no longer follows the sentinel; sentinel %q is as it was", t.id)
	}
	return out, nil
}

// problemsOf gives the problems of a definition the code of wrong parameters.
func problemsOf(err error) error {
	var problems sentinels.Problems
	if errors.As(err, &problems) {
		return refused(problems)
	}
	return err
}
