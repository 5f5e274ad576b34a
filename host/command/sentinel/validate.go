package sentinel

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

type validateIn struct {
	File       string          `json:"file,omitempty" jsonschema:"file that holds the definition, below the workspace or absolute"`
	Definition json.RawMessage `json:"definition,omitempty" jsonschema:"the definition itself; as a string, problems have its lines"`
	besideIn
	Base      string   `json:"base,omitempty" jsonschema:"folder that a relative workspace of the definition is relative to; that of file, or the caller's workspace, if not given"`
	Variables []string `json:"variables,omitempty" jsonschema:"variables that a start would set"`
	Edit      bool     `json:"edit,omitempty" jsonschema:"check it as an edit: errors that the stored sentinel with its id has too are warnings"`
	Strict    bool     `json:"strict,omitempty" jsonschema:"a definition with warnings is not valid"`
}

type validated struct {
	Valid      bool               `json:"valid"`
	SentinelID sentinels.ID       `json:"sentinelId,omitempty"`
	Problems   sentinels.Problems `json:"problems" jsonschema:"what is wrong, and warnings of a definition that is valid; 100 at most, and one that counts the others"`
}

// maxVariables bounds the names that a start would set.
const maxVariables = 1000

// validate checks a definition against all that this process knows.
func (f family) validate(ctx context.Context, call *command.Call, in validateIn) (validated, error) {
	if (in.Definition == nil) == (in.File == "") {
		return validated{}, &abi.Error{Code: abi.BadFields, Message: "validate: give either definition or file"}
	}
	if len(in.Variables) > maxVariables {
		return validated{}, &abi.Error{Code: abi.BadFields, Field: "variables", Message: fmt.Sprintf("validate: %d variables, at most %d", len(in.Variables), maxVariables)}
	}
	src, file, err := f.source(call, createIn{File: in.File, Definition: in.Definition})
	if err != nil {
		return validated{}, err
	}
	ctx = checking(ctx, call)
	inspect := f.rt.Inspect
	if in.Edit {
		inspect = f.rt.InspectEdit
	}
	def, problems := inspect(ctx, src, file)
	if problems, err = f.withoutBeside(ctx, call, problems, def, in, src, file); err != nil {
		return validated{}, err
	}
	var out validated
	if def != nil {
		types := f.rt.Types()
		problems = problems.Merge(sentinels.Check(ctx, def, types, in.Variables...).Locate(file, src, types))
		problems = problems.Merge(in.workspace(call, def, file).Locate(file, src, types))
	}
	if out.Valid = len(problems.Errors()) == 0; out.Valid {
		out.SentinelID = def.ID
	}
	if err := ctx.Err(); err != nil {
		return validated{}, err // there may be more problems
	}
	out.Problems = append(sentinels.Problems{}, problems.Shown()...)
	if in.Strict && len(problems) > 0 {
		out.Valid = false
	}
	return out, nil
}

// workspace reports a missing folder of the runs of a definition: a run would fail, and a file
// trigger never fire. To a caller that is held to its own workspace, it says
// nothing about folders elsewhere.
func (in validateIn) workspace(call *command.Call, def *sentinels.Definition, file string) sentinels.Problems {
	if def.Workspace == "" {
		return nil
	}
	dir := def.Workspace
	if !filepath.IsAbs(dir) {
		base := cmp.Or(in.Base, call.Workspace)
		if path := (createIn{File: in.File}).path(file); path != "" && in.Base == "" {
			base = filepath.Dir(path)
		}
		dir = filepath.Join(base, dir)
	}
	if rel, err := filepath.Rel(call.Workspace, dir); call.Held() && (err != nil || !filepath.IsLocal(rel)) {
		return nil
	}
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	p := sentinels.Problem{Path: "workspace", Kind: sentinels.KindValue, Message: fmt.Sprintf("no folder %q", dir),
		Hint: "create it; a relative workspace is relative to the folder of the definition's file"}
	if in.Edit { // it may be created before a run starts
		p.Kind = sentinels.KindWarning
	}
	return sentinels.Problems{p}
}

// withoutBeside removes the problem that a sentinel is not stored where it is given with the
// definition, or lies beside its file; it adds the problems of those.
func (f family) withoutBeside(
	ctx context.Context, call *command.Call, problems sentinels.Problems, def *sentinels.Definition, in validateIn, src []byte, file string,
) (sentinels.Problems, error) {
	if def == nil {
		return problems, nil
	}
	all, bad, err := f.neighbours(ctx, call, in.besideIn, src, createIn{File: in.File}.path(file), f.reader(call))
	if e := abi.As(err); e != nil && e.Code == abi.BadFields {
		beside := sentinels.Problems{{Kind: sentinels.KindValue, Path: e.Field, Message: e.Message, Hint: e.Hint}}
		return problems.Merge(beside.Locate(file, src, f.rt.Types())), nil
	}
	if err != nil {
		return nil, err
	}
	refs := def.References(f.rt.Types())
	problems = slices.DeleteFunc(problems, func(p sentinels.Problem) bool {
		_, given := all[refs[p.Path]]
		return p.Kind == sentinels.KindAbsent && (given || slices.ContainsFunc(bad, func(b sentinels.Problem) bool { return b.Path == p.Path }))
	})
	for i := range bad {
		bad[i].File = file
	}
	problems = problems.Merge(bad)
	wrong := f.childInputs(def, all, true)
	for i := range wrong {
		if in.Edit {
			wrong[i].Kind = sentinels.KindWarning
		}
	}
	problems = problems.Merge(wrong.Locate(file, src, f.rt.Types()))
	for i, p := range problems { // no run of it would start; an edit may come before what it refers to
		if refs[p.Path] != "" && p.Kind == sentinels.KindAbsent && !in.Edit {
			problems[i].Kind = sentinels.KindValue
		}
	}
	return problems, nil
}

// childInputs returns what is wrong with the inputs that steps of a definition, and of inline ones
// in it, give to other sentinels: those beside it, then the stored ones. With absent, it warns of those that a
// command starts and that are neither.
func (f family) childInputs(def *sentinels.Definition, beside map[sentinels.ID]named, absent bool) (found sentinels.Problems) {
	types := f.rt.Types()
	child := func(id sentinels.ID) *sentinels.Definition {
		if n, ok := beside[id]; ok {
			return n.Definition
		}
		if id == def.ID {
			return def
		}
		stored, err := f.rt.Definition(id)
		if err != nil {
			return nil // that it is missing is reported already
		}
		def, err := f.rt.Decoded(stored)
		if err != nil {
			return nil // it is refused when it is started
		}
		return def
	}
	def.Walk(types, func(prefix string, d *sentinels.Definition) {
		for _, p := range append(d.ChildInputs(types, child), startedInputs(d, types, child, absent)...) {
			p.Path = prefix + p.Path
			found = append(found, p)
		}
	})
	return found
}

// startedInputs is [sentinels.Definition.ChildInputs] for steps that start a sentinel by a command of this family. With
// absent, one that is not found is a warning, unless a step of d stores sentinels: something else may do so before the step.
func startedInputs(
	d *sentinels.Definition, types *sentinels.TypeSet, child func(id sentinels.ID) *sentinels.Definition, absent bool,
) (found sentinels.Problems) {
	stores := false
	d.EachStep(func(_ string, s *sentinels.Step) { stores = stores || slices.Contains(storing, commandOf(s)) })
	d.EachStep(func(path string, s *sentinels.Step) {
		spec, ok := types.Lookup(s.Type)
		if name := commandOf(s); !ok || name != "sentinel/run" && name != "sentinel/start" {
			return
		}
		for _, mark := range spec.Marks() {
			var params struct {
				SentinelID sentinels.ID    `json:"sentinelId"`
				Inputs     json.RawMessage `json:"inputs"`
			}
			if mark.Mark != abi.MarkParams || json.Unmarshal(s.Fields[mark.Path], &params) != nil || !params.SentinelID.Valid() {
				continue
			}
			at := path + "." + mark.Path
			if def := child(params.SentinelID); def != nil {
				found = append(found, def.CheckWritten(params.Inputs, at, at+".inputs")...)
			} else if absent && !stores {
				found = append(found, sentinels.Problem{
					Path: at + ".sentinelId", Kind: sentinels.KindWarning,
					Message: fmt.Sprintf("no sentinel %q is stored here, and this command starts stored ones only", params.SentinelID),
					Hint:    fmt.Sprintf(`store it first: sentinel create FILE. A file needs no store in a step {"type": "sentinel", "definition": {"$ref": "./%s.json"}}`, params.SentinelID),
				})
			}
		}
	})
	return found
}

// storing are the commands that may store a sentinel that a later step starts.
var storing = []string{"sentinel/create", "sentinel/save", "sentinel/import", "sentinel/load"}

// commandOf returns the command that a step names, "" for none.
func commandOf(s *sentinels.Step) (name string) {
	if json.Unmarshal(s.Fields["command"], &name) != nil {
		return ""
	}
	return name
}

// definitionText returns the text of a definition that was given as JSON or as a string
// that holds it. White space before it is kept, so that problems have the caller's
// lines.
func definitionText(raw json.RawMessage) json.RawMessage {
	var text string
	if trimmed := bytes.TrimSpace(raw); len(trimmed) > 0 && trimmed[0] == '"' && json.Unmarshal(trimmed, &text) == nil {
		return json.RawMessage(text)
	}
	return raw
}
