package sentinel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

type createIn struct {
	File        string          `json:"file,omitempty" jsonschema:"file that holds the definition, below the workspace or absolute"`
	Definition  json.RawMessage `json:"definition,omitempty" jsonschema:"the definition itself"`
	Name        string          `json:"name,omitempty" jsonschema:"its name, with steps and loop in place of a definition"`
	Description string          `json:"description,omitempty"`
	Steps       json.RawMessage `json:"steps,omitempty" jsonschema:"its steps"`
	Loop        json.RawMessage `json:"loop,omitempty" jsonschema:"its loop; once if not given"`
	Safety      json.RawMessage `json:"safety,omitempty" jsonschema:"its limits"`
	besideIn
	Revision *int `json:"revision,omitempty" jsonschema:"revision the edit was made on; another one is a conflict"`
	Replace  bool `json:"replace,omitempty" jsonschema:"replace another definition with this id by a new revision; without it and without revision, that is a conflict. An equal one is no change"`
}

type saved struct {
	SentinelID sentinels.ID `json:"sentinelId"`
	Name       string       `json:"name"`
	Revision   int          `json:"revision"`
	Hash       string       `json:"hash"`
	Warning    string       `json:"warning,omitempty" jsonschema:"what did not work beside the revision itself"`
	// Beside are the sentinels that were stored because this one refers to them.
	Beside []storedBeside `json:"beside,omitempty" jsonschema:"sentinels that it refers to and that were stored with it"`
	// Problems are those that did not prevent the edit.
	Problems sentinels.Problems `json:"problems,omitempty" jsonschema:"keys that were dropped, errors that the sentinel had before, as warnings, and what it needs that is not available here"`
}

func (f family) create(ctx context.Context, call *command.Call, in createIn) (saved, error) {
	return f.createWithin(ctx, call, in, given(call))
}

// An authorship is what bounds the runs of a revision, see [runtime.SaveOptions].
type authorship struct {
	within []string
	whole  bool
}

// given is the authorship of definitions that the caller gives whole.
func given(call *command.Call) authorship {
	return authorship{call.Bound(), call.By == command.ByUser}
}

func (f family) createWithin(ctx context.Context, call *command.Call, in createIn, by authorship) (saved, error) {
	src, file, err := f.source(call, in)
	if err != nil {
		return saved{}, err
	}
	def, problems, _ := f.rt.DecodeEdit(src, file)
	if len(problems) > 0 {
		return saved{}, in.refused(problems)
	}
	// What an agent makes is its own, whatever the definition says.
	switch {
	case call.By == command.ByAgent:
		def.CreatedBy = call.Who()
	case def.CreatedBy == "":
		def.CreatedBy = f.creator(call)
	}
	if err := f.sync(ctx, def.ID); err != nil {
		return saved{}, err
	}
	expect, err := f.replaced(call, in, def)
	if err != nil {
		return saved{}, err
	}
	all, err := f.beside(ctx, call, in.besideIn, src, in.path(file), f.reader(call))
	if err != nil {
		return saved{}, err
	}
	stored, warning, err := f.saveBeside(ctx, call, all, in.Replace)
	if err != nil {
		return saved{}, err
	}
	out, err := f.save(ctx, call, def, expect, by)
	if err != nil {
		return saved{}, err
	}
	out.Beside, out.Warning, out.Problems = stored, joinLines(out.Warning, warning), f.remaining(ctx, givenText{src, file})
	return out, nil
}

// creator returns who makes a definition that does not say it: the persona of the call, which is
// that of the run for steps and models, else the author of the run's definition, else the sentinel
// itself. `sentinel list --persona` finds it.
func (f family) creator(call *command.Call) string {
	if call.As != "" || call.By == command.ByUser {
		return call.As
	}
	if stored, err := f.rt.Definition(call.Sentinel); err == nil {
		if def := sentinels.Lenient(stored.Definition, f.rt.DecodeOptions("")); def != nil && def.CreatedBy != "" {
			return def.CreatedBy
		}
	}
	return string(call.Sentinel)
}

// path returns the file of the definition, "" if it is not given by a file.
func (in createIn) path(file string) string {
	if in.File == "" {
		return ""
	}
	return file
}

// replaced returns the revision that the definition may take the place of. Another
// definition with its id is a conflict, unless the caller names its revision or says that it
// is to be replaced: two authors who choose the same name do not lose anything.
func (f family) replaced(call *command.Call, in createIn, def *sentinels.Definition) (int, error) {
	switch {
	case in.Revision != nil:
		return *in.Revision, nil
	case in.Replace:
		return runtime.AnyRevision, nil
	}
	head, err := f.rt.Definition(def.ID)
	switch {
	case abi.CodeOf(err) == abi.NotFound:
		return 0, nil
	case err != nil:
		return 0, err
	case head.Hash == def.Hash() && !hidden(call, head.Definition):
		return head.Revision, nil
	}
	e := &abi.Error{Code: abi.Conflict, Permanent: true, Hint: fmt.Sprintf("choose another name, or give replace (--replace); over HTTP, PUT /v1/sentinels/%s with If-Match replaces it", def.ID),
		Message: fmt.Sprintf("create sentinel %q: another definition is stored, at revision %d", def.ID, head.Revision)}
	if before := sentinels.Lenient(head.Definition, f.rt.DecodeOptions("")); before != nil && !hidden(call, head.Definition) {
		e.Message += "; the difference to this one:\n" + clipLines(sentinels.DiffText(before, def, fmt.Sprintf("%s@%d", def.ID, head.Revision), "new"), maxDiffLines)
	}
	return 0, e
}

// hidden reports whether a definition has what the caller does not see. What the caller gives is then not compared with
// it: that nothing differs would confirm a guess of a secret.
func hidden(call *command.Call, definition []byte) bool {
	return call.Redact != nil && !bytes.Equal(call.Redact(definition), definition)
}

// maxDiffLines is how much of a difference an error shows.
const maxDiffLines = 60

// clipLines returns the first lines of a text, and how many follow.
func clipLines(text string, most int) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) <= most {
		return strings.Join(lines, "\n")
	}
	return strings.Join(lines[:most], "\n") + fmt.Sprintf("\n[%d lines left out]", len(lines)-most)
}

// refused is the error for problems of the definition that the parameters name.
func (in createIn) refused(problems sentinels.Problems) error {
	switch {
	case in.File != "":
		return refused(problems)
	case in.Definition != nil:
		return refusedParam("definition", in.Definition, problems)
	}
	return refusedParam("", nil, problems)
}

// A givenText is what a definition was read from.
type givenText struct {
	src  []byte
	file string
}

// save stores a definition as a new revision and writes it back to its file. The file was
// read before.
func (f family) save(ctx context.Context, call *command.Call, def *sentinels.Definition, expect int, by authorship) (saved, error) {
	if err := f.keepsGate(call, string(def.ID)); err != nil {
		return saved{}, err
	}
	s, err := f.rt.SaveWith(ctx, def, runtime.SaveOptions{Expect: expect, Run: causingRun(call), By: who(call), Within: by.within, Whole: by.whole})
	if err != nil {
		return saved{}, err
	}
	return saved{SentinelID: s.ID, Name: def.Name, Revision: s.Revision, Hash: s.Hash, Warning: joinLines(f.writeBack(ctx, s), f.exceeds(s, def))}, nil
}

// remaining returns the problems of a definition that was stored in spite of them, as
// warnings: an edit that adds an error is refused. Inputs of other sentinels are compared with the stored ones, which
// may be edited later, so they refuse no edit.
func (f family) remaining(ctx context.Context, from givenText) sentinels.Problems {
	def, problems := f.rt.InspectEdit(ctx, from.src, from.file)
	if def != nil {
		problems = problems.Merge(f.childInputs(def, nil, false).Locate(from.file, from.src, f.rt.Types()))
	}
	for i := range problems {
		p := &problems[i]
		if from.file == "" {
			p.Line, p.Column = 0, 0 // the caller does not see this text
		}
		if !p.IsWarning() { // of a run, whose definition is not the stored one
			p.Kind = sentinels.KindWarning
		}
	}
	return problems.Shown()
}

// source returns the text of the definition that the parameters name.
func (f family) source(call *command.Call, in createIn) ([]byte, string, error) {
	switch {
	case in.File != "":
		return f.readFile(call, "read definition", in.File, sentinels.MaxBytes)
	case in.Definition != nil:
		return definitionText(in.Definition), "definition", nil
	case in.Steps == nil:
		return nil, "", &abi.Error{Code: abi.BadFields, Message: "create sentinel: nothing is given", Hint: "give file, or definition, or name and steps"}
	}
	parts := map[string]any{"name": in.Name, "steps": in.Steps}
	if in.Description != "" {
		parts["description"] = in.Description
	}
	if in.Loop != nil {
		parts["loop"] = in.Loop
	}
	if in.Safety != nil {
		parts["safety"] = in.Safety
	}
	src, err := json.Marshal(parts)
	return src, "create", err
}

// readFile reads a file that the caller names, and returns its absolute path.
func (f family) readFile(call *command.Call, op, name string, limit int64) ([]byte, string, error) {
	path := inWorkspace(call, name)
	if call.Held() {
		src, err := f.reader(call)(name, limit)
		return src, path, err
	}
	src, err := f.reader(call)(path, limit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = &abi.Error{Code: abi.NotFound, Field: "file", Message: fmt.Sprintf("%s: no file %q", op, path)}
	case errors.Is(err, regularfile.ErrSize):
		err = &abi.Error{Code: abi.Limit, Field: "file", Message: fmt.Sprintf("%s: %v", op, err)}
	}
	return src, path, err
}

// inWorkspace returns the absolute path of a name relative to the caller's workspace: of
// a step that of its run, of a user the current folder.
func inWorkspace(call *command.Call, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(call.Workspace, name)
}

type idIn struct {
	SentinelID string `json:"sentinelId" jsonschema:"id of the sentinel, or of one of its runs"`
}
