package sentinel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"

	"github.com/sentinel-runtime/sentinel/host/command"
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
	Revision    *int            `json:"revision,omitempty" jsonschema:"revision the edit was made on; another one is a conflict"`
}

type saved struct {
	SentinelID sentinels.ID `json:"sentinelId"`
	Name       string       `json:"name"`
	Revision   int          `json:"revision"`
	Hash       string       `json:"hash"`
	Warning    string       `json:"warning,omitempty" jsonschema:"what did not work beside the revision itself"`
}

func (f family) create(ctx context.Context, call *command.Call, in createIn) (saved, error) {
	src, file, err := f.source(call, in)
	if err != nil {
		return saved{}, err
	}
	expect := runtime.AnyRevision
	if in.Revision != nil {
		expect = *in.Revision
	}
	return f.save(ctx, call, src, file, expect)
}

func (f family) save(ctx context.Context, call *command.Call, src []byte, file string, expect int) (saved, error) {
	def, problems := f.rt.Decode(src, file)
	if len(problems) > 0 {
		return saved{}, refused(problems)
	}
	if err := f.sync(ctx, def.ID); err != nil {
		return saved{}, err
	}
	s, err := f.rt.SaveWith(ctx, def, runtime.SaveOptions{Expect: expect, By: who(call)})
	if err != nil {
		return saved{}, err
	}
	return saved{s.ID, def.Name, s.Revision, s.Hash, f.writeBack(ctx, s)}, nil
}

// source returns the text of the definition that the parameters name.
func (f family) source(call *command.Call, in createIn) ([]byte, string, error) {
	switch {
	case in.File != "":
		path := in.File
		if !filepath.IsAbs(path) {
			path = filepath.Join(call.Workspace, path)
		}
		src, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil, "", &abi.Error{Code: abi.NotFound, Field: "file", Message: fmt.Sprintf("read definition: no file %q", path)}
		}
		return src, path, err
	case in.Definition != nil:
		return in.Definition, "definition", nil
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

type loadIn struct {
	Path string `json:"path" jsonschema:"a definition file, or a folder of them"`
}

type loadOut struct {
	Loaded   []saved       `json:"loaded"`
	Problems []loadProblem `json:"problems,omitempty" jsonschema:"files that are no valid definition"`
}

type loadProblem struct {
	File    string `json:"file"`
	Problem string `json:"problem"`
}

// load reads a project's sentinels. A bad file does not keep out the others.
func (f family) load(ctx context.Context, call *command.Call, in loadIn) (loadOut, error) {
	path := in.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(call.Workspace, path)
	}
	files := []string{path}
	info, err := os.Stat(path)
	if err != nil {
		return loadOut{}, &abi.Error{Code: abi.NotFound, Field: "path", Message: fmt.Sprintf("load sentinels: %v", err)}
	}
	if info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(path, "*.json")); err != nil {
			return loadOut{}, err
		}
		sort.Strings(files)
	}
	out := loadOut{Loaded: []saved{}}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err == nil {
			var s saved
			if s, err = f.save(ctx, call, src, file, runtime.AnyRevision); err == nil {
				out.Loaded = append(out.Loaded, s)
				continue
			}
		}
		out.Problems = append(out.Problems, loadProblem{file, err.Error()})
	}
	return out, nil
}

type idIn struct {
	SentinelID string `json:"sentinelId" jsonschema:"id of the sentinel, or of one of its runs"`
}

type exportOut struct {
	SentinelID sentinels.ID    `json:"sentinelId"`
	Run        sentinels.RunID `json:"run,omitempty" jsonschema:"the run whose definition this is"`
	Name       string          `json:"name"`
	Revision   int             `json:"revision" jsonschema:"0 for a run of a definition that is not stored"`
	Edit       int             `json:"edit,omitempty" jsonschema:"number of the run's own edit, made on that revision"`
	Hash       string          `json:"hash"`
	Definition json.RawMessage `json:"definition"`
}

// export shows the definition that a sentinel, or the next iteration of a run,
// has.
func (f family) export(_ context.Context, _ *command.Call, in idIn) (exportOut, error) {
	t, err := f.find(in.SentinelID)
	if err != nil {
		return exportOut{}, err
	}
	def, err := f.read(t)
	if err != nil {
		return exportOut{}, err
	}
	text, err := def.def.MarshalJSON()
	return exportOut{t.id, t.run, def.def.Name, def.revision, def.edit, def.hash, text}, err
}
