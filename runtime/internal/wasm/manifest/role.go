package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/role"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Provides is the role of a step type, ABI clause A2.6.
type Provides struct {
	As   abi.Role `json:"as"`
	Name string   `json:"name,omitempty"` // of a command
}

// verb is the part of a command's name behind the plugin's.
var verb = lazyregexp.New(`^[a-z][a-z0-9_-]{0,63}$`)

// roleFault returns what is wrong with the role of the step type at i, "" if nothing is.
// [Manifest.CheckRoles] checks the rest, for which schemas are compiled.
func (m Manifest) roleFault(i int) string {
	s := m.Steps[i]
	if s.Provides == nil {
		return ""
	}
	p := *s.Provides
	switch {
	case !slices.Contains(abi.Roles(), p.As):
		return fmt.Sprintf(".provides.as %.40q is not a role: want one of %v (A2.6)", p.As, abi.Roles())
	case !m.requests(p.As):
		return fmt.Sprintf(`.provides.as is %q, and permissions does not have {"use": "provide", "names": [%q], "reason": ...} (A2.6)`, p.As, p.As)
	case p.As != abi.RoleCommand && p.Name != "":
		return fmt.Sprintf(".provides.name %.80q: a role %s has no name (A2.6)", p.Name, p.As)
	case p.As != abi.RoleCommand:
		return ""
	}
	family, rest, _ := strings.Cut(p.Name, "/")
	switch {
	case family != m.Name || !verb.MatchString(rest):
		return fmt.Sprintf(".provides.name %.80q: want the plugin's name, a slash and %s (A2.6)", p.Name, verb)
	case len(s.Output) == 0:
		return ".output is missing: a command needs a JSON Schema of its output (A9.2)"
	}
	for _, other := range m.Steps[:i] {
		if other.Provides != nil && other.Provides.Name == p.Name {
			return fmt.Sprintf(".provides.name %q is also that of the step type %q (A2.6)", p.Name, other.Type)
		}
	}
	return ""
}

// requests reports whether the manifest has the permission for a role.
func (m Manifest) requests(as abi.Role) bool {
	return slices.ContainsFunc(m.Permissions, func(a Permission) bool {
		return a.Use == string(abi.UseProvide) && slices.Contains(a.Names, string(as))
	})
}

// provideFault returns which role of a permission no step type has: it could never be used.
func (m Manifest) provideFault(a Permission) string {
	if a.Use != string(abi.UseProvide) {
		return ""
	}
	for i, name := range a.Names {
		provided := slices.ContainsFunc(m.Steps, func(s StepType) bool { return s.Provides != nil && string(s.Provides.As) == name })
		if !provided {
			return fmt.Sprintf(".names[%d] %.40q: no step type provides it (A2.6)", i, name)
		}
	}
	return ""
}

// CheckRoles returns why the fields of a step type cannot be those of its role. It compiles
// the schemas of these step types, which must have been checked against the limits before.
func (m Manifest) CheckRoles() error {
	for _, spec := range m.Types() {
		i := slices.IndexFunc(m.Steps, func(s StepType) bool { return s.Type == string(spec.Type) })
		p := m.Steps[i].Provides
		if p == nil {
			continue
		}
		types, err := sentinels.NewTypeSet([]sentinels.TypeSpec{spec})
		if err != nil {
			return abi.New(abi.Plugin, "describe: "+err.Error())
		}
		compiled, _ := types.Lookup(spec.Type)
		if err := checkRole(compiled, p.As); err != nil {
			return &abi.Error{Code: abi.Plugin, Permanent: true, Message: fmt.Sprintf("describe: steps[%d]: %v", i, err), Hint: "sdk/ABI.md, A9, has the contract of each role"}
		}
	}
	return nil
}

// hostFields are the fields of every step that a step type may define itself. No caller
// could give them to a role.
var hostFields = []string{"parse", "timeoutMs"}

func checkRole(spec *sentinels.TypeSpec, as abi.Role) error {
	if marks := spec.Marks(); len(marks) > 0 {
		return fmt.Errorf("field %q has the mark %s, and the fields of a role are plain values (A9.1)", marks[0].Path, marks[0].Mark)
	}
	var schema struct {
		Properties           map[string]json.RawMessage `json:"properties"`
		AdditionalProperties json.RawMessage            `json:"additionalProperties"`
	}
	if err := strictjson.DecodeOpen(spec.Fields, &schema, strictjson.Unlimited()); err != nil {
		return fmt.Errorf("fields: %w", err)
	}
	for _, name := range hostFields {
		if schema.Properties[name] != nil {
			return fmt.Errorf("field %q belongs to the host, so a role cannot be given it (A9.1)", name)
		}
	}
	open := string(schema.AdditionalProperties) == "true"
	return role.CheckFields(as, func(fields json.RawMessage) error {
		var given map[string]json.RawMessage
		if err := json.Unmarshal(fields, &given); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(given)) {
			if !open && schema.Properties[name] == nil { // a step knows no others, whatever JSON Schema says
				return fmt.Errorf("properties does not have %q", name)
			}
		}
		return spec.CheckFields(fields)
	})
}
