package sentinel

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// importIn has one of the first three members.
type importIn struct {
	File       string          `json:"file,omitempty" jsonschema:"file with a bundle or a definition, below the workspace or absolute"`
	Bundle     json.RawMessage `json:"bundle,omitempty" jsonschema:"the bundle itself"`
	Definition json.RawMessage `json:"definition,omitempty" jsonschema:"a definition"`
	Overwrite  bool            `json:"overwrite,omitempty" jsonschema:"replace other sentinels with these ids, by a new revision"`
	Rename     json.RawMessage `json:"rename,omitempty" jsonschema:"new id of the only sentinel, or an object of old ids and new ones; references among them follow"`
}

type importOut struct {
	Imported []imported `json:"imported"`
	Notes    []string   `json:"notes,omitempty" jsonschema:"plugins of the bundle that are missing or another version here"`
}

type imported struct {
	SentinelID sentinels.ID `json:"sentinelId"`
	Name       string       `json:"name"`
	Revision   int          `json:"revision"`
	Hash       string       `json:"hash"`
	Change     string       `json:"change" enum:"created,updated,unchanged"`
	Revisions  int          `json:"revisions" jsonschema:"revisions that were added; more than 1 only with history"`
	Note       string       `json:"note,omitempty" jsonschema:"what was not imported"`
	Warning    string       `json:"warning,omitempty" jsonschema:"what did not work after the import itself"`
	// Problems are those that did not prevent the import.
	Problems sentinels.Problems `json:"problems,omitempty" jsonschema:"keys that were dropped, errors that the sentinel had before, and what it needs that is not available here"`
}

// importBundle imports a bundle or a definition: it checks all of it, reports every
// problem, and then stores everything in one commit, or nothing.
func (f family) importBundle(ctx context.Context, call *command.Call, in importIn) (importOut, error) {
	src, file, err := f.importSource(call, in)
	if err != nil {
		return importOut{}, err
	}
	b, err := decodeBundle(src, file)
	if err != nil {
		return importOut{}, err
	}
	names, err := decodeRename(in.Rename, b)
	if err != nil {
		return importOut{}, err
	}
	out := importOut{Imported: []imported{}, Notes: f.pluginNotes(b.Plugins)}
	incoming, err := f.incoming(ctx, call, b, file, names)
	if err != nil {
		if e := abi.As(err); e != nil {
			e.Hint = strings.Join(out.Notes, "; ") // an unknown step type may be one of theirs
		}
		return importOut{}, err
	}
	if err := f.expect(ctx, call, incoming, in.Overwrite); err != nil {
		return importOut{}, err
	}
	for _, d := range incoming {
		if err := f.keepsGate(call, string(d.Definition.ID)); err != nil {
			return importOut{}, err
		}
	}
	note := "imported"
	if in.File != "" {
		note = "imported from " + in.File
	}
	done, err := f.rt.Import(ctx, incoming, runtime.SaveOptions{Run: causingRun(call), By: who(call), Note: note, Within: call.Bound()})
	if err != nil {
		return importOut{}, err
	}
	for i, d := range done {
		one := imported{SentinelID: d.ID, Name: d.Name, Revision: d.Revision, Hash: d.Hash, Change: "unchanged", Revisions: d.Revisions}
		if d.Changed {
			one.Change = "updated"
			if incoming[i].Expect == 0 { // new, or deleted before
				one.Change = "created"
			}
			one.Warning = f.writeBack(ctx, d.Stored)
		}
		if len(incoming[i].History) > 1 && d.Revisions < 2 {
			one.Note = "the sentinel has a history here, so that of the bundle was not imported"
		}
		one.Problems = f.remaining(ctx, givenText{b.Sentinels[i].Definition, file})
		out.Imported = append(out.Imported, one)
	}
	return out, nil
}

// importSource returns the text to import and its name in errors.
func (f family) importSource(call *command.Call, in importIn) (src []byte, name string, err error) {
	switch {
	case in.File != "" && in.Bundle == nil && in.Definition == nil:
		src, _, err = f.readFile(call, "import sentinels", in.File, maxBundle)
		return src, in.File, err
	case in.File == "" && in.Bundle != nil && in.Definition == nil:
		return unquoted(in.Bundle), "bundle", nil
	case in.File == "" && in.Bundle == nil && in.Definition != nil:
		return unquoted(in.Definition), "definition", nil
	}
	return nil, "", &abi.Error{Code: abi.BadFields, Message: "import sentinels: want one of file, bundle and definition"}
}

// pluginNotes reports plugins that are not live here with the digest that they had at
// the export. That alone is not an error: another version may have the same step types.
func (f family) pluginNotes(needed []bundledPlugin) (notes []string) {
	live := map[string]string{}
	for _, p := range f.rt.Plugins() {
		if p.State == plugin.Live {
			live[p.Name] = p.Digest
		}
	}
	for _, p := range needed {
		if live[p.Name] == p.Digest {
			continue
		}
		state := "is not loaded"
		if live[p.Name] != "" {
			state = "is another version"
		}
		notes = append(notes, fmt.Sprintf("plugin %q %s here: the bundle was exported with %s (sha256 %.12s)", p.Name, state, cmp.Or(p.Version, "a version"), p.Digest))
	}
	return notes
}

// incoming decodes every sentinel of a bundle with the step types of this host.
func (f family) incoming(ctx context.Context, call *command.Call, b bundle, file string, names map[sentinels.ID]sentinels.ID) ([]runtime.Incoming, error) {
	var problems []error
	var out []runtime.Incoming
	seen := map[sentinels.ID]bool{}
	ctx = checking(ctx, call)
	for i, s := range b.Sentinels {
		one, err := f.incomingOne(ctx, call, s, file, i, names)
		if err == nil && seen[one.Definition.ID] { // after renaming, which can make two ids equal
			err = fmt.Errorf("%s: duplicate sentinel %q", file, one.Definition.ID)
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		seen[one.Definition.ID] = true
		out = append(out, one)
	}
	return out, importError(abi.BadFields, problems, len(b.Sentinels), "")
}

func (f family) incomingOne(
	ctx context.Context, call *command.Call, s bundledSentinel, file string, index int, names map[sentinels.ID]sentinels.ID,
) (runtime.Incoming, error) {
	if s.SentinelID != "" {
		file = fmt.Sprintf("%s: %s", file, s.SentinelID)
	}
	def, problems := f.rt.InspectEdit(ctx, s.Definition, file)
	if errs := problems.Errors(); len(errs) > 0 {
		return runtime.Incoming{}, errs
	}
	if s.SentinelID != "" && s.SentinelID != def.ID {
		return runtime.Incoming{}, fmt.Errorf("%s: sentinels[%d]: the definition has the id %q", file, index, def.ID)
	}
	in := runtime.Incoming{Definition: def, Within: s.Within}
	for _, r := range s.Revisions { // checked by the engine
		in.History = append(in.History, runtime.Stored{
			Name: r.Name, Revision: r.Revision, Hash: r.Hash, SavedAt: r.SavedAt, By: importedBy(call, r.By), Note: r.Note,
			Deleted: r.Deleted, Within: r.Within, Definition: r.Definition,
		})
	}
	return f.rename(in, names)
}

// importedBy returns who made a revision of a bundle. A person vouches for the text of a bundle.
// That of every other caller says what the caller likes, so its author stands behind the caller:
// "agent:ci/user".
func importedBy(call *command.Call, by string) string {
	if call.By == command.ByUser {
		return by
	}
	return strings.TrimSuffix(who(call)+"/"+by, "/")
}

// expect sets the revision that each import replaces, and reports other sentinels with
// these ids unless overwrite is set. An equal definition is not a conflict, so an import
// can be repeated.
func (f family) expect(ctx context.Context, call *command.Call, incoming []runtime.Incoming, overwrite bool) error {
	var conflicts []error
	for i := range incoming {
		id := incoming[i].Definition.ID
		if err := f.sync(ctx, id); err != nil {
			return err
		}
		s, err := f.rt.Definition(id)
		switch {
		case abi.CodeOf(err) == abi.NotFound: // also a deleted one
		case err != nil:
			return err
		case !overwrite && (s.Hash != incoming[i].Definition.Hash() || hidden(call, s.Definition)):
			conflicts = append(conflicts, fmt.Errorf("another sentinel %q exists, at revision %d", id, s.Revision))
		default:
			incoming[i].Expect = s.Revision
		}
	}
	return importError(abi.Conflict, conflicts, len(incoming), "overwrite makes new revisions of them, rename keeps both")
}

// importError returns one error for all problems of an import, or nil.
func importError(code abi.Code, problems []error, of int, hint string) error {
	if len(problems) == 0 {
		return nil
	}
	text := strings.TrimSuffix(errors.Join(problems...).Error(), "\n")
	if of > 1 {
		text = fmt.Sprintf("import sentinels: nothing is imported, because of %d of %d:\n%s", len(problems), of, text)
	}
	return &abi.Error{Code: code, Permanent: code == abi.BadFields, Message: text, Hint: hint}
}
