package sentinels

import "encoding/json"

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
