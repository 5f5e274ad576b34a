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
}

func (f family) create(ctx context.Context, call *command.Call, in createIn) (saved, error) {
	src, file, err := f.source(call, in)
	if err != nil {
		return saved{}, err
	}
	expect := -1
	if in.Revision != nil {
		expect = *in.Revision
	}
	return f.save(ctx, src, file, expect)
}

func (f family) save(ctx context.Context, src []byte, file string, expect int) (saved, error) {
	def, problems := f.rt.Decode(src, file)
	if len(problems) > 0 {
		return saved{}, &abi.Error{Code: abi.BadFields, Permanent: true, Message: problems.Error()}
	}
	s, err := f.rt.Save(ctx, def, expect)
	if err != nil {
		return saved{}, err
	}
	return saved{s.ID, def.Name, s.Revision, s.Hash}, nil
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
			if s, err = f.save(ctx, src, file, -1); err == nil {
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
	Name       string          `json:"name"`
	Revision   int             `json:"revision"`
	Hash       string          `json:"hash"`
	Definition json.RawMessage `json:"definition"`
}

func (f family) export(_ context.Context, _ *command.Call, in idIn) (exportOut, error) {
	s, err := f.rt.Definition(sentinels.ID(in.SentinelID))
	if err != nil {
		return exportOut{}, err
	}
	def, err := f.rt.Decoded(s)
	if err != nil {
		return exportOut{}, err
	}
	return exportOut{s.ID, def.Name, s.Revision, s.Hash, s.Definition}, nil
}

type stepsOut struct {
	SentinelID sentinels.ID `json:"sentinelId"`
	Revision   int          `json:"revision"`
	Steps      []stepLine   `json:"steps"`
}

type stepLine struct {
	Address string             `json:"address"`
	Type    sentinels.StepType `json:"type"`
	Name    string             `json:"name,omitempty"`
	Step    json.RawMessage    `json:"step"`
	Last    string             `json:"last,omitempty" jsonschema:"how it ended in the newest iteration of the newest run"`
}

func (f family) stepList(_ context.Context, _ *command.Call, in idIn) (stepsOut, error) {
	s, err := f.rt.Definition(sentinels.ID(in.SentinelID))
	if err != nil {
		return stepsOut{}, err
	}
	def, err := f.rt.Decoded(s)
	if err != nil {
		return stepsOut{}, err
	}
	out := stepsOut{SentinelID: s.ID, Revision: s.Revision, Steps: []stepLine{}}
	for i := range def.Steps {
		if err := addSteps(&out.Steps, fmt.Sprint(i), &def.Steps[i]); err != nil {
			return out, err
		}
	}
	f.lastOf(&out)
	return out, nil
}

// addSteps lists a step and, behind it, those nested in it.
func addSteps(into *[]stepLine, address string, step *sentinels.Step) error {
	raw, err := json.Marshal(step)
	if err != nil {
		return err
	}
	*into = append(*into, stepLine{Address: address, Type: step.Type, Name: step.Name, Step: raw})
	fields := make([]string, 0, len(step.Blocks))
	for field := range step.Blocks {
		fields = append(fields, field)
	}
	sort.Strings(fields)
	for _, field := range fields {
		for i := range step.Blocks[field] {
			if err := addSteps(into, fmt.Sprintf("%s.%s.%d", address, field, i), &step.Blocks[field][i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// lastOf adds how each step ended last.
func (f family) lastOf(out *stepsOut) {
	runs, err := f.rt.Runs(runtime.RunFilter{Sentinel: out.SentinelID, Limit: 1})
	if err != nil || len(runs) == 0 {
		return
	}
	tr, err := f.rt.Trace(runs[0].ID)
	if err != nil || len(tr.Iterations) == 0 {
		return
	}
	ends := map[string]string{}
	tr.Iterations[len(tr.Iterations)-1].Walk(func(s *runtime.TraceStep) { ends[s.Address] = s.State() })
	for i := range out.Steps {
		out.Steps[i].Last = ends[out.Steps[i].Address]
	}
}
