package sentinel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// An importIn is what sentinel/import takes: one of the first three.
type importIn struct {
	File       string          `json:"file,omitempty" jsonschema:"file that holds a bundle or a definition, below the workspace or absolute"`
	Bundle     json.RawMessage `json:"bundle,omitempty" jsonschema:"the bundle itself"`
	Definition json.RawMessage `json:"definition,omitempty" jsonschema:"a definition"`
	Overwrite  bool            `json:"overwrite,omitempty" jsonschema:"take the place of other sentinels with these ids, as a new revision"`
	Rename     json.RawMessage `json:"rename,omitempty" jsonschema:"new id of the sentinel, or an object of old ids and new ones; references among them follow"`
}

type importOut struct {
	Imported []imported `json:"imported"`
}

// An imported sentinel says what became of one of a bundle.
type imported struct {
	SentinelID sentinels.ID `json:"sentinelId"`
	Name       string       `json:"name"`
	Revision   int          `json:"revision"`
	Hash       string       `json:"hash"`
	Change     string       `json:"change" jsonschema:"what became of it" enum:"created,updated,unchanged"`
	Revisions  int          `json:"revisions" jsonschema:"how many came; more than 1 only with the history"`
	Note       string       `json:"note,omitempty" jsonschema:"what was not taken over"`
	Warning    string       `json:"warning,omitempty" jsonschema:"what did not work beside the import itself"`
}

// take takes in what sentinel/export wrote, or a definition. All is checked
// first, and every problem told; then all is stored in one commit, or nothing.
// The order of checks is that of what people can do about them: how the bundle is
// read, what its definitions say, what is there already. Only the engine's own
// checks of a history come last, within the import.
func (f family) take(ctx context.Context, call *command.Call, in importIn) (importOut, error) {
	// A step may import too, and then it says so in the history: see who.
	b, source, err := f.readGiven(call, in)
	if err != nil {
		return importOut{}, err
	}
	names, err := renames(in.Rename, b)
	if err != nil {
		return importOut{}, err
	}
	incoming, err := f.incoming(b, source, names)
	if err != nil {
		return importOut{}, err
	}
	for i := range incoming {
		// What somebody saved in an editor a moment ago is taken up first, or it
		// would be overwritten unseen.
		if err := f.sync(ctx, incoming[i].Definition.ID); err != nil {
			return importOut{}, err
		}
	}
	if err := f.expected(incoming, in.Overwrite); err != nil {
		return importOut{}, err
	}
	// The history says where a revision came from; with a history of its own it
	// says what it said there.
	note := "imported"
	if in.File != "" {
		note = "imported from " + in.File
	}
	done, err := f.rt.Import(ctx, incoming, runtime.SaveOptions{By: who(call), Note: note})
	if err != nil {
		return importOut{}, err
	}
	out := importOut{Imported: []imported{}}
	for i, d := range done {
		one := imported{SentinelID: d.ID, Name: d.Name, Revision: d.Revision, Hash: d.Hash, Change: "unchanged", Revisions: d.Revisions}
		if d.Changed {
			one.Change = "updated"
			// Of a deleted one, too: for whoever lists sentinels it is new.
			if incoming[i].Expect == 0 {
				one.Change = "created"
			}
			// One after the other and after the commit: a file that cannot be written
			// is a warning, and the others still are.
			one.Warning = f.writeBack(ctx, d.Stored)
		}
		// Two histories cannot be merged: both have a revision 1.
		if len(incoming[i].History) > 1 && d.Revisions < 2 {
			one.Note = "the sentinel has a history here, so the one of the bundle was not taken over"
		}
		out.Imported = append(out.Imported, one)
	}
	return out, nil
}

// readGiven reads the one of the three forms that is given.
func (f family) readGiven(call *command.Call, in importIn) (bundle, string, error) {
	// A second form would be ignored without a word.
	given := 0
	for _, is := range []bool{in.File != "", in.Bundle != nil, in.Definition != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		return bundle{}, "", &abi.Error{Code: abi.BadFields, Message: "import sentinels: give one of file, bundle and definition"}
	}
	src, source := unquoted(in.Bundle), "bundle"
	switch {
	case in.File != "":
		source = in.File
		var err error
		if src, err = f.readTravel(call, in.File); err != nil {
			return bundle{}, "", err
		}
	case in.Definition != nil:
		src, source = unquoted(in.Definition), "definition"
	}
	b, err := readBundle(src, source)
	return b, source, err
}

// incoming checks every sentinel of a bundle against the step types there are
// here.
func (f family) incoming(b bundle, source string, names map[sentinels.ID]sentinels.ID) ([]runtime.Incoming, error) {
	var bad trouble
	var out []runtime.Incoming
	seen := map[sentinels.ID]bool{}
	for i, t := range b.Sentinels {
		file := source
		if t.SentinelID != "" {
			file = fmt.Sprintf("%s: %s", source, t.SentinelID)
		}
		// As a file would be, with plugins asked: a bundle may come from a host with
		// other step types.
		def, problems := f.rt.Decode(t.Definition, file)
		if len(problems) > 0 {
			bad.add(problems)
			continue
		}
		// People read the id beside the definition, engines the one in it.
		if t.SentinelID != "" && t.SentinelID != def.ID {
			bad.add(fmt.Errorf("%s: sentinels[%d]: its definition is that of %q", file, i, def.ID))
			continue
		}
		// The history is checked where it is stored.
		one := runtime.Incoming{Definition: def}
		for _, r := range t.Revisions {
			one.History = append(one.History, r.stored())
		}
		one, err := f.renamed(one, names)
		if err != nil {
			bad.add(err)
			continue
		}
		// After renaming, which can make two the same.
		if seen[one.Definition.ID] {
			bad.add(fmt.Errorf("%s: sentinel %q is there twice", source, one.Definition.ID))
			continue
		}
		seen[one.Definition.ID] = true
		out = append(out, one)
	}
	return out, bad.err(abi.BadFields, len(b.Sentinels))
}

// expected notes for each sentinel the revision that it comes on, and refuses
// to take the place of others without being told to.
func (f family) expected(incoming []runtime.Incoming, overwrite bool) error {
	var bad trouble
	for i := range incoming {
		id := incoming[i].Definition.ID
		// What is deleted is not there: to take its place takes nothing from anybody.
		s, err := f.rt.Definition(id)
		switch {
		case abi.CodeOf(err) == abi.NotFound:
		case err != nil:
			return err
		// The same content is no conflict: an import can be repeated.
		case !overwrite && s.Hash != incoming[i].Definition.Hash():
			bad.add(fmt.Errorf("sentinel %q: another one with this id is there, at revision %d", id, s.Revision))
		default:
			incoming[i].Expect = s.Revision
		}
	}
	err := bad.err(abi.Conflict, len(incoming))
	if e := abi.As(err); e != nil {
		e.Hint = "give overwrite to make new revisions of them, or rename to keep both"
	}
	return err
}

// trouble gathers why an import does not happen: whoever mends a bundle wants
// to hear of everything at once.
type trouble struct{ errs []error }

func (t *trouble) add(err error) { t.errs = append(t.errs, err) }

func (t *trouble) err(code abi.Code, of int) error {
	if len(t.errs) == 0 {
		return nil
	}
	text := strings.TrimSuffix(errors.Join(t.errs...).Error(), "\n")
	// Of a single one the error says enough.
	if of > 1 {
		text = fmt.Sprintf("import sentinels: nothing is taken in, because of %d of %d:\n%s", len(t.errs), of, text)
	}
	return &abi.Error{Code: code, Permanent: code == abi.BadFields, Message: text}
}
