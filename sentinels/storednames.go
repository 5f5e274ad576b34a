package sentinels

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// StoredNames returns an object with some fields of a step, such as a merge patch, with
// the names that the stored form has in place of aliases. t is the type of the step; a type
// in the object has precedence. A field that is given under two names is an error.
func StoredNames(fields json.RawMessage, t StepType, types *TypeSet) (json.RawMessage, error) {
	members, err := membersOf(fields)
	if err != nil {
		return nil, err
	}
	var named StepType
	if json.Unmarshal(members["type"], &named) == nil && named != "" {
		t = named
	}
	spec, _ := types.Lookup(t)
	if spec != nil && spec.Plugin == builtIn {
		if err := adaptSeconds(members, spec); err != nil {
			return nil, err
		}
	}
	out, err := renamed(members, func(name string) string {
		if f := format.step.find(name); f != nil {
			return f.name
		}
		if spec != nil {
			return spec.stored(name)
		}
		return name
	})
	if err != nil || spec == nil {
		return encoded(out, err)
	}
	for _, mark := range spec.Marks() {
		if raw, given := out[mark.Path]; given && mark.Mark == markDefinition && isObject(raw) {
			if out[mark.Path], err = storedDefinition(raw); err != nil {
				return nil, err
			}
		}
	}
	return encoded(out, nil)
}

// storedDefinition is StoredNames for a definition. Its lists are replaced as a whole by a
// patch, so that names in them do not matter.
func storedDefinition(raw json.RawMessage) (json.RawMessage, error) {
	members, err := membersOf(raw)
	if err != nil {
		return nil, err
	}
	out, err := renamed(members, func(name string) string {
		f := format.definition.find(name)
		switch {
		case f == nil:
			return name
		case f.into != "":
			return f.into
		}
		return f.name
	})
	if err != nil {
		return nil, err
	}
	for name, value := range out {
		outer, inner, within := strings.Cut(name, ".")
		if !within {
			continue
		}
		delete(out, name)
		object, err := membersOf(out[outer])
		if out[outer] == nil || err != nil {
			object = map[string]json.RawMessage{}
		}
		if _, both := object[inner]; !both {
			object[inner] = value
		}
		if out[outer], err = encoded(object, nil); err != nil {
			return nil, err
		}
	}
	for name, stored := range map[string]func(string) string{
		"loop":    func(name string) string { return storedName(format.loop, name) },
		"trigger": func(name string) string { return storedName(format.trigger, name) },
	} {
		if value := out[name]; isObject(value) {
			object, err := membersOf(value)
			if err != nil {
				return nil, err
			}
			if object, err = renamed(object, stored); err != nil {
				return nil, err
			}
			if out[name], err = encoded(object, nil); err != nil {
				return nil, err
			}
		}
	}
	return encoded(out, nil)
}

func storedName[T any](t table[T], name string) string {
	if f := t.find(name); f != nil {
		return f.name
	}
	return name
}

// renamed returns members under the names that stored returns.
func renamed(members map[string]json.RawMessage, stored func(string) string) (map[string]json.RawMessage, error) {
	out := make(map[string]json.RawMessage, len(members))
	for name, value := range members {
		to := stored(name)
		if _, both := members[to]; both && to != name {
			return nil, fmt.Errorf("%q and %q are the same field; remove one", name, to)
		}
		if _, both := out[to]; both {
			return nil, fmt.Errorf("%q is another name of %q, which is given twice; remove one", name, to)
		}
		out[to] = value
	}
	return out, nil
}

// membersOf returns the members of an object by name.
func membersOf(raw json.RawMessage) (members map[string]json.RawMessage, err error) {
	err = strictjson.Decode(raw, &members, strictjson.Limits{})
	return members, err
}

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

func encoded(members map[string]json.RawMessage, err error) (json.RawMessage, error) {
	if err != nil {
		return nil, err
	}
	return json.Marshal(members)
}

// adaptSeconds replaces timeoutSecs by timeoutMs, as the decoder does.
func adaptSeconds(members map[string]json.RawMessage, spec *TypeSpec) error {
	raw, given := members["timeoutSecs"]
	if !given || spec.compiled.has(spec.stored("timeoutSecs")) {
		return nil
	}
	if _, both := members["timeoutMs"]; both {
		return fmt.Errorf("%q and %q are the same field; remove one", "timeoutSecs", "timeoutMs")
	}
	var seconds float64
	if err := json.Unmarshal(raw, &seconds); err != nil {
		return fmt.Errorf("timeoutSecs: want a number of seconds")
	}
	delete(members, "timeoutSecs")
	members["timeoutMs"] = strconv.AppendInt(nil, int64(math.Ceil(seconds*1000)), 10)
	return nil
}
