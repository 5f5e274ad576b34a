// Package sentinels defines the format of definitions, and the types that the
// other packages share: runs, events, documents, model turns.
//
// A [Definition] is the JSON of one sentinel, a loop of steps. [Decode] reads a
// text strictly and reports every [Problem] with its line and column. [Encode]
// writes a definition in one stable form, [Rewrite] changes a text and keeps its
// comments and layout. FORMAT.md is the normative description of the format.
//
// The package has no list of step types. The fields of a type come from the
// manifests of the installed plugins, as a [TypeSet].
package sentinels
