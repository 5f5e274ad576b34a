package sdk

import (
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Describe returns the plugin's manifest, clause A2 of ABI.md. It is deterministic:
// fields keep their order and aliases are sorted.
func (p Plugin) Describe() string {
	dst := append([]byte(nil), `{"name":`...)
	dst = appendString(dst, p.Name)
	dst = append(dst, `,"version":`...)
	dst = appendString(dst, p.Version)
	dst = append(dst, `,"abi":`...)
	dst = strconv.AppendInt(dst, abi.Version, 10)
	dst = append(dst, `,"steps":[`...)
	for i, s := range p.Steps {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = s.appendManifest(dst)
	}
	dst = append(dst, ']')
	if len(p.Permissions) > 0 {
		permissions := make([]Value, len(p.Permissions))
		for i, a := range p.Permissions {
			permissions[i] = Object(F("use", String(string(a.Use))), F("names", Strings(a.Names)), F("reason", String(a.Reason)))
		}
		dst = List(permissions...).AppendJSON(append(dst, `,"permissions":`...))
	}
	if p.Stateless {
		dst = append(dst, `,"stateless":true`...)
	}
	return string(append(dst, `,"handles":true}`...))
}

func (s Step) appendManifest(dst []byte) []byte {
	dst = appendString(append(dst, `{"type":`...), s.Type)
	dst = appendString(append(dst, `,"summary":`...), s.Summary)
	dst = append(append(dst, `,"fields":`...), s.Fields...)
	if s.Output != "" {
		dst = append(append(dst, `,"output":`...), s.Output...)
	}
	if len(s.Infer) > 0 {
		dst = Strings(s.Infer).AppendJSON(append(dst, `,"infer":`...))
	}
	if len(s.Aliases) > 0 {
		fields := make([]Field, 0, len(s.Aliases))
		for alias, name := range s.Aliases {
			fields = append(fields, F(alias, String(name)))
		}
		dst = Object(fields...).append(append(dst, `,"aliases":`...), sorted)
	}
	if s.ReadOnly {
		dst = append(dst, `,"readOnly":true`...)
	}
	if s.Provides != nil {
		dst = appendString(append(dst, `,"provides":{"as":`...), string(s.Provides.As))
		if s.Provides.Name != "" {
			dst = appendString(append(dst, `,"name":`...), s.Provides.Name)
		}
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// step returns the step type with that name, or nil.
func (p Plugin) step(name string) *Step {
	for i := range p.Steps {
		if p.Steps[i].Type == name {
			return &p.Steps[i]
		}
	}
	return nil
}
