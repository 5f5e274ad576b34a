package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Member is one value inside the parameters or the result of a command.
type Member struct {
	Path     string // "changes[].path"; [] is each element of a list, .* each value of a map
	Type     string // "string", "array|null", "any"
	Required bool   // it is always there
	Text     string // description, and the values that are allowed
}

// Members lists what a JSON Schema says of an object, the members of each value
// behind it, required ones first. A recursive definition is expanded once; where
// it occurs again, Text names the first place.
func Members(schema json.RawMessage) ([]Member, error) {
	var root node
	if err := json.Unmarshal(schema, &root); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	w := walker{root: root, seen: map[string]string{}}
	w.members("", root)
	return w.list, nil
}

// A node is the part of a schema that describes shape.
type node struct {
	Type                 json.RawMessage   `json:"type"` // a name or a list of names
	Description          string            `json:"description"`
	Format               string            `json:"format"`
	Enum                 []json.RawMessage `json:"enum"`
	Default              json.RawMessage   `json:"default"`
	Ref                  string            `json:"$ref"`
	Properties           map[string]node   `json:"properties"`
	Required             []string          `json:"required"`
	Items                *node             `json:"items"`
	AdditionalProperties *node             `json:"additionalProperties"`
	Defs                 map[string]node   `json:"$defs"`
}

// UnmarshalJSON reads a schema; true and false are schemas too.
func (n *node) UnmarshalJSON(text []byte) error {
	type object node
	if s := string(text); s == "true" || s == "false" {
		return nil
	}
	return json.Unmarshal(text, (*object)(n))
}

// types are the JSON types that a value may have; none is any.
func (n node) types() []string {
	var one string
	if json.Unmarshal(n.Type, &one) == nil && one != "" {
		return []string{one}
	}
	var many []string
	_ = json.Unmarshal(n.Type, &many) // a schema without a type allows any
	slices.SortFunc(many, func(a, b string) int { return compareNull(a) - compareNull(b) })
	return many
}

// compareNull puts null behind the other types.
func compareNull(name string) int {
	if name == "null" {
		return 1
	}
	return 0
}

type walker struct {
	root node
	seen map[string]string // path at which a definition was expanded
	list []Member
}

// members adds the members of the value at path.
func (w *walker) members(path string, n node) {
	names := slices.SortedFunc(maps.Keys(n.Properties), func(x, y string) int {
		return cmp.Or(position(n.Required, x)-position(n.Required, y), cmp.Compare(x, y))
	})
	for _, name := range names {
		w.add(strings.TrimPrefix(path+"."+name, "."), n.Properties[name], slices.Contains(n.Required, name))
	}
	if n.Items != nil {
		w.inner(path+"[]", *n.Items)
	}
	if more := n.AdditionalProperties; more != nil && (more.Type != nil || more.Ref != "") {
		w.inner(strings.TrimPrefix(path+".*", "."), *more)
	}
}

// position sorts required members first, in the order in which they are written.
func position(required []string, name string) int {
	if i := slices.Index(required, name); i >= 0 {
		return i
	}
	return len(required)
}

// inner adds what is in the elements of a list or a map. The elements themselves
// are worth a line only where they are more than an object.
func (w *walker) inner(path string, n node) {
	if target, ok := w.resolve(n); ok && len(target.Properties) > 0 {
		w.expand(path, n, target)
		return
	}
	w.add(path, n, true)
}

func (w *walker) add(path string, n node, required bool) {
	target, ok := w.resolve(n)
	if !ok {
		target = n
	}
	w.list = append(w.list, Member{Path: path, Type: cmp.Or(strings.Join(target.types(), "|"), "any"), Required: required, Text: target.text()})
	w.expand(path, n, target)
}

// expand adds the members of a value, unless its definition was expanded before.
func (w *walker) expand(path string, n, target node) {
	if n.Ref != "" {
		if first, again := w.seen[n.Ref]; again {
			w.list = append(w.list, Member{Path: path, Type: "object", Required: true, Text: "as " + first})
			return
		}
		w.seen[n.Ref] = path
	}
	w.members(path, target)
}

// resolve follows a reference into $defs; ok is false for any other reference.
func (w *walker) resolve(n node) (target node, ok bool) {
	if n.Ref == "" {
		return n, true
	}
	name, local := strings.CutPrefix(n.Ref, "#/$defs/")
	target, ok = w.root.Defs[name]
	return target, ok && local
}

// text is the description with format, allowed values and default.
func (n node) text() string {
	parts := []string{n.Description}
	if n.Format != "" {
		parts = append(parts, "("+n.Format+")")
	}
	if len(n.Enum) > 0 {
		words := make([]string, len(n.Enum))
		for i, e := range n.Enum {
			var s string
			if words[i] = string(e); json.Unmarshal(e, &s) == nil {
				words[i] = s
			}
		}
		parts = append(parts, "("+strings.Join(words, ", ")+")")
	}
	if n.Default != nil {
		parts = append(parts, "(default "+string(n.Default)+")")
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}
