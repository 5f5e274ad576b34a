package manifest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// MaxSize limits the text of a manifest in bytes, ABI clause A8.1.
const MaxSize = 256 << 10

// Manifest is the description that a plugin's describe returns, ABI clause A2.
type Manifest struct {
	Name        string       `json:"name"`
	Version     string       `json:"version"`
	ABI         int          `json:"abi"`
	Steps       []StepType   `json:"steps"`
	Permissions []Permission `json:"permissions,omitempty"`
	Stateless   bool         `json:"stateless,omitempty"`
	Handles     bool         `json:"handles,omitempty"` // the guest takes handles of large values, ABI clause A3.4
}

// StepType is one step type that a plugin provides, ABI clause A2.2.
type StepType struct {
	Type     string            `json:"type"`
	Summary  string            `json:"summary"`
	Fields   json.RawMessage   `json:"fields"`           // JSON Schema of type object
	Output   json.RawMessage   `json:"output,omitempty"` // JSON Schema of the output, for users and checks of references
	Infer    []string          `json:"infer,omitempty"`
	Aliases  map[string]string `json:"aliases,omitempty"` // alias to field
	ReadOnly bool              `json:"readOnly,omitempty"`
	Provides *Provides         `json:"provides,omitempty"` // nil for a step type without a role
}

// Permission is one permission that a plugin asks for, ABI clause A2.4.
type Permission struct {
	Use    string   `json:"use"`
	Names  []string `json:"names,omitempty"`
	Reason string   `json:"reason"`
}

var identifier = lazyregexp.New(`^[a-z][a-z0-9_]{0,63}$`)

// jsonLimits are the limits of a manifest as JSON. The tighter limits of ABI
// clause A8.4 on schemas are checked afterwards.
var jsonLimits = strictjson.Limits{Bytes: MaxSize, Depth: 10_000, Keys: 100_000}

// Parse decodes a manifest and reports all of its faults. Unknown keys, also
// by case, are faults: a plugin with a misspelt "permissions" must not load as one that asks
// for nothing.
func Parse(text []byte) (Manifest, error) {
	var m Manifest
	if len(text) > MaxSize {
		return m, abi.New(abi.Limit, fmt.Sprintf("describe: a manifest of %d bytes, the limit is %d", len(text), MaxSize))
	}
	// Read the version first, because a newer ABI may have more keys.
	var version struct {
		ABI int `json:"abi"`
	}
	if err := strictjson.DecodeOpen(text, &version, jsonLimits); err != nil {
		return m, abi.New(abi.Plugin, "describe: invalid manifest: "+err.Error())
	}
	if version.ABI != abi.Version {
		return m, &abi.Error{Code: abi.Plugin, Message: fmt.Sprintf("describe: plugin speaks ABI %d, this host speaks %d", version.ABI, abi.Version),
			Hint: "build the plugin with the SDK of this host's version"}
	}
	if err := strictjson.Decode(text, &m, jsonLimits); err != nil {
		return m, abi.New(abi.Plugin, "describe: invalid manifest: "+err.Error())
	}
	if faults := m.faults(); len(faults) > 0 {
		return m, abi.New(abi.Plugin, "describe: "+strings.Join(faults, "; "))
	}
	return m, nil
}

// faults returns the faults of a decoded manifest.
func (m Manifest) faults() []string {
	var faults []string
	add := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if !identifier.MatchString(m.Name) {
		add("name %q does not match %s", m.Name, identifier)
	}
	if len(m.Steps) == 0 {
		add("steps is empty")
	}
	seen := map[string]bool{}
	for i, s := range m.Steps {
		if !identifier.MatchString(s.Type) {
			add("steps[%d].type %q does not match %s", i, s.Type, identifier)
		}
		if seen[s.Type] {
			add("steps[%d].type %q is listed twice", i, s.Type)
		}
		seen[s.Type] = true
		var schema struct {
			Type string `json:"type"`
		}
		if strictjson.DecodeOpen(s.Fields, &schema, jsonLimits) != nil || schema.Type != "object" {
			add("steps[%d].fields is not a JSON Schema of type object", i)
		}
		if len(s.Output) > 0 && s.Output[0] != '{' {
			add("steps[%d].output is not a JSON Schema", i)
		}
		if fault := m.roleFault(i); fault != "" {
			add("steps[%d]%s", i, fault)
		}
	}
	for i, a := range m.Permissions {
		fault := a.fault()
		if fault == "" {
			fault = m.provideFault(a)
		}
		if fault != "" {
			add("permissions[%d]%s", i, fault)
		}
		if strings.TrimSpace(a.Reason) == "" {
			add("permissions[%d].reason is empty", i)
		}
	}
	return faults
}

// Syntax of the names that a plugin chooses. The caller of Load checks the names of
// hosts, whose syntax it knows: see wasm.LoadOptions.Allow.
var (
	folderWord = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_-]{0,63}(:rw)?$`)
	secretName = lazyregexp.New(`^[A-Z][A-Z0-9_]{0,63}$`)
)

// fault returns the fault of a permission by clause A2.4, "" if it has none.
func (a Permission) fault() string {
	use := abi.Use(a.Use)
	switch use {
	case abi.UseCommand, abi.UseHTTP, abi.UseFolder, abi.UseSecret, abi.UseProvide:
		if len(a.Names) == 0 {
			return fmt.Sprintf(".names is empty, and %s needs names", use)
		}
	case abi.UseWatch:
		if len(a.Names) > 0 {
			return ".names is not empty, and watch has none"
		}
	case abi.UseLLM, abi.UseSpawn, abi.UseEmit:
	default:
		return fmt.Sprintf(".use %q is not known", a.Use)
	}
	for i, name := range a.Names {
		if why := nameFault(use, name); why != "" {
			return fmt.Sprintf(".names[%d] %.100q %s", i, name, why)
		}
	}
	return ""
}

// nameFault returns why a name of a permission is invalid, "" if it is valid. A name that
// matches nothing is rejected here instead of at every call.
func nameFault(use abi.Use, name string) string {
	if name == "" || len(name) > 256 || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return "is not a name: want 1 to 256 bytes without spaces"
	}
	switch use {
	case abi.UseFolder:
		if !folderWord.MatchString(name) {
			return fmt.Sprintf("does not match %s", folderWord)
		}
	case abi.UseSecret:
		if !secretName.MatchString(name) {
			return fmt.Sprintf("does not match %s", secretName)
		}
	case abi.UseCommand:
		if family, _ := strings.CutSuffix(name, "/*"); name != "*" && (family == "" || strings.Contains(family, "*")) {
			return `is not a command: want "family/command", "family/*" or "*"`
		}
	case abi.UseLLM, abi.UseSpawn, abi.UseEmit:
		if strings.Contains(strings.TrimSuffix(name, "*"), "*") {
			return "has a * before its end"
		}
	}
	return ""
}

// Types returns the step types of a manifest as those of package sentinels.
func (m Manifest) Types() []sentinels.TypeSpec {
	specs := make([]sentinels.TypeSpec, 0, len(m.Steps))
	for _, s := range m.Steps {
		specs = append(specs, sentinels.TypeSpec{
			Type: sentinels.StepType(s.Type), Summary: s.Summary, Fields: s.Fields, Output: s.Output, Infer: s.Infer, Aliases: s.Aliases, Plugin: m.Name,
		})
	}
	return specs
}
