package sentinel

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sort"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// A stepIn names one step.
type stepIn struct {
	editIn
	Index   *int   `json:"index,omitempty" jsonschema:"place of the step, from 0" minimum:"0"`
	Address string `json:"address,omitempty" jsonschema:"a nested step, such as 3.then.0, or a step by its id"`
}

// An addIn is what step/add takes.
type addIn struct {
	stepIn
	Step json.RawMessage `json:"step" jsonschema:"the step"`
}

// stepAdd puts a step before the one at a place; the place behind the last one,
// or none, appends.
func (f family) stepAdd(ctx context.Context, call *command.Call, in addIn) (edited, error) {
	step, err := f.step(in.Step, "step")
	if err != nil {
		return edited{}, err
	}
	var at string // of the try that counted: where an index leads depends on edits before
	out, err := f.edit(ctx, call, in.editIn, "", func(d *sentinels.Definition) (*sentinels.Definition, error) {
		if at, err = in.place(d, true); err != nil {
			return nil, err
		}
		next, err := d.InsertStep(at, *step)
		return next, badAddress(err)
	})
	out.Address = at
	return out, err
}

// An updateStepIn is what step/update takes: a part of the step or all of it.
type updateStepIn struct {
	stepIn
	Params json.RawMessage `json:"params,omitempty" jsonschema:"merged into the params of a command step, into the fields of any other; null takes a field away"`
	Step   json.RawMessage `json:"step,omitempty" jsonschema:"takes the step's place as a whole"`
}

// stepUpdate changes a step in its place. What the params do not name stays,
// its comments in a file too.
func (f family) stepUpdate(ctx context.Context, call *command.Call, in updateStepIn) (edited, error) {
	if (in.Params == nil) == (in.Step == nil) {
		return edited{}, &abi.Error{Code: abi.BadFields, Message: "update step: give either params or step"}
	}
	var whole *sentinels.Step
	var err error
	if in.Step != nil {
		if whole, err = f.step(in.Step, "step"); err != nil {
			return edited{}, err
		}
	}
	var at string
	out, err := f.edit(ctx, call, in.editIn, "", func(d *sentinels.Definition) (*sentinels.Definition, error) {
		if at, err = in.place(d, false); err != nil {
			return nil, err
		}
		old, err := d.StepAt(at)
		if err != nil {
			return nil, badAddress(err)
		}
		step := whole
		if step == nil {
			if step, err = f.patched(old, in.Params); err != nil {
				return nil, err
			}
		}
		next, err := d.ReplaceStep(at, *step)
		return next, badAddress(err)
	})
	out.Address = at
	return out, err
}

// stepRemove takes a step away, with all that is nested in it. The answer has no
// address: the step has none any more.
func (f family) stepRemove(ctx context.Context, call *command.Call, in stepIn) (edited, error) {
	var at string
	out, err := f.edit(ctx, call, in.editIn, "", func(d *sentinels.Definition) (_ *sentinels.Definition, err error) {
		if at, err = in.place(d, false); err != nil {
			return nil, err
		}
		next, err := d.RemoveStep(at)
		return next, badAddress(err)
	})
	return out, err
}

// step reads a step that was given as the parameter name. What depends on the
// other steps is checked together with them.
func (f family) step(raw json.RawMessage, name string) (*sentinels.Step, error) {
	step, problems := sentinels.DecodeStep(unquoted(raw), f.rt.DecodeOptions("step"))
	if len(problems) > 0 {
		return nil, refusedParam(name, raw, problems)
	}
	return step, nil
}

// patched returns the step with params merged in. What a person who calls
// step/update means by params is, for a step that calls a command, that
// command's parameters.
func (f family) patched(old *sentinels.Step, params json.RawMessage) (*sentinels.Step, error) {
	bad := func(err error) error {
		return &abi.Error{Code: abi.BadFields, Field: "params", Message: fmt.Sprintf("update step: params: %v", err)}
	}
	patch := unquoted(params)
	if _, err := strictjson.Members(patch, strictjson.Limits{}); err != nil {
		return nil, bad(err)
	}
	name := "params"           // of the parameter, in front of the paths in the step
	if old.Type == "command" { // its other fields are changed by step
		name = ""
		var err error
		if old, patch, err = f.storedParams(old, patch); err != nil {
			return nil, bad(err)
		}
		patch = append(append([]byte(`{"params":`), patch...), '}')
	} else {
		var err error
		if patch, err = sentinels.StoredNames(patch, old.Type, f.rt.Types()); err != nil {
			return nil, bad(err)
		}
	}
	text, err := old.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if text, err = mergePatch(text, patch); err != nil {
		return nil, &abi.Error{Code: abi.BadFields, Field: "params", Message: fmt.Sprintf("update step: %v", err)}
	}
	return f.step(text, name)
}

// storedParams returns the step and the patch of its parameters with the names of the
// command's parameters in place of aliases, so that the two can be merged.
func (f family) storedParams(old *sentinels.Step, patch json.RawMessage) (*sentinels.Step, json.RawMessage, error) {
	var name string
	if f.opt.Lookup == nil || json.Unmarshal(old.Fields["command"], &name) != nil {
		return old, patch, nil
	}
	cmd, ok := f.opt.Lookup(name)
	if !ok || len(cmd.Aliases) == 0 {
		return old, patch, nil
	}
	patch, err := storedNames(patch, cmd.Aliases)
	if err != nil || old.Fields["params"] == nil {
		return old, patch, err
	}
	params, err := storedNames(old.Fields["params"], cmd.Aliases)
	if err != nil {
		return old, patch, err
	}
	step := *old
	step.Fields = maps.Clone(old.Fields)
	step.Fields["params"] = params
	return &step, patch, nil
}

// storedNames replaces the names in an object that are aliases.
func storedNames(object json.RawMessage, aliases map[string]string) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if strictjson.Decode(object, &members, strictjson.Limits{}) != nil {
		return object, nil // not an object: its check says so
	}
	for alias, name := range aliases {
		value, given := members[alias]
		if !given {
			continue
		}
		if _, both := members[name]; both {
			return nil, fmt.Errorf("%q and %q are the same parameter; remove one", alias, name)
		}
		delete(members, alias)
		members[name] = value
	}
	return json.Marshal(members)
}

// unquoted takes JSON out of a string, which is how models and shells hand over
// an object now and then.
func unquoted(raw json.RawMessage) json.RawMessage {
	raw = bytes.TrimSpace(raw)
	var text string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
		return bytes.TrimSpace([]byte(text))
	}
	return raw
}

// mergePatch lays patch over target as RFC 7396 has it: null takes a field
// away, objects merge, everything else takes the place of what was there.
func mergePatch(target, patch json.RawMessage) (json.RawMessage, error) {
	var changes map[string]json.RawMessage
	if json.Unmarshal(patch, &changes) != nil || changes == nil {
		return patch, nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(target, &fields) != nil || fields == nil {
		fields = map[string]json.RawMessage{} // any other value is replaced
	}
	for name, value := range changes {
		if string(bytes.TrimSpace(value)) == "null" {
			delete(fields, name)
			continue
		}
		merged, err := mergePatch(fields[name], value)
		if err != nil {
			return nil, err
		}
		fields[name] = merged
	}
	return json.Marshal(fields)
}

// place returns the address that is meant. end says that the place behind the
// last step will do, and is meant when nothing is said.
func (in stepIn) place(d *sentinels.Definition, end bool) (string, error) {
	switch {
	case in.Index != nil && in.Address != "":
		return "", &abi.Error{Code: abi.BadFields, Field: "index", Message: "index and address name a step twice", Hint: "give one of them"}
	case in.Address != "":
		return resolve(d, in.Address)
	case in.Index == nil && end:
		return strconv.Itoa(len(d.Steps)), nil
	case in.Index == nil:
		return "", &abi.Error{Code: abi.BadFields, Field: "index", Message: "no step is named", Hint: "give index, or address for a nested step"}
	}
	// A wrong index names how many steps there are: it was typed by a user who
	// counted another list.
	last := len(d.Steps) - 1
	if end {
		last++
	}
	if *in.Index > last {
		e := &abi.Error{Code: abi.BadFields, Field: "index", Message: fmt.Sprintf("index %d: the sentinel has %s", *in.Index, count(len(d.Steps), "step"))}
		switch {
		case end:
			e.Hint = fmt.Sprintf("an index from 0 to %d; %d appends", last, last)
		case last >= 0:
			e.Hint = fmt.Sprintf("an index from 0 to %d", last)
		}
		return "", e
	}
	return strconv.Itoa(*in.Index), nil
}

// count writes a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// problemPath turns the path of a step in problems, steps[3].then[0], into its address.
var problemPath = strings.NewReplacer("[", ".", "]", "")

// resolve returns the address of a step that is named by its address, by its path in
// problems, or by its id.
func resolve(d *sentinels.Definition, name string) (string, error) {
	if path, ok := strings.CutPrefix(name, "steps["); ok {
		name = problemPath.Replace(path)
	}
	// An id may begin with a digit, but is never digits alone.
	if name[0] >= '0' && name[0] <= '9' {
		if _, err := strconv.Atoi(strings.Split(name, ".")[0]); err == nil {
			return name, nil
		}
	}
	at, ids := "", []string(nil)
	eachOf(d, func(address string, s *sentinels.Step) {
		if s.ID == name {
			at = address
		}
		if s.ID != "" {
			ids = append(ids, s.ID)
		}
	})
	if at != "" {
		return at, nil
	}
	e := &abi.Error{Code: abi.NotFound, Field: "address", Message: fmt.Sprintf("no step has the address or the id %q", name)}
	if near := sentinels.Suggest(name, ids); len(near) > 0 {
		e.Hint = fmt.Sprintf("did you mean %q?", near[0])
	}
	return "", e
}

// eachOf calls each for the lists of a definition.
func eachOf(d *sentinels.Definition, fn func(address string, s *sentinels.Step)) {
	for _, list := range d.Lists() {
		each(list.Steps, list.Prefix(), fn)
	}
}

// each calls fn for every step, nested ones behind the step they are nested in.
func each(steps []sentinels.Step, prefix string, fn func(address string, s *sentinels.Step)) {
	for i := range steps {
		address := prefix + strconv.Itoa(i)
		fn(address, &steps[i])
		// Sorted, so that a list of steps has one order.
		fields := make([]string, 0, len(steps[i].Blocks))
		for field := range steps[i].Blocks {
			fields = append(fields, field)
		}
		sort.Strings(fields)
		for _, field := range fields {
			each(steps[i].Blocks[field], address+"."+field+".", fn)
		}
	}
}

// badAddress gives an address that leads nowhere its code.
func badAddress(err error) error {
	if err == nil {
		return nil
	}
	return &abi.Error{Code: abi.BadFields, Field: "address", Message: err.Error()}
}
