// Package sentinels defines the format of definitions, and the types that the
// other packages share: runs, events, documents, model turns.
//
// A [Definition] is the JSON of one sentinel, a loop of steps. [Decode] reads a
// text strictly and reports every [Problem] with its line and column. [Encode]
// writes a definition in one stable form, [Rewrite] changes a text and keeps its
// comments and layout. FORMAT.md is the normative description of the format.
//
// # Adding a field
//
// A key of the format is one row of a table: its name and aliases, its documentation,
// its schema, and how it is decoded (with its checks) and encoded. Decode, Encode, Schema,
// the hints for unknown keys, Diff and Rewrite all use that row. So a new field needs:
//
//   - a Go field in [Definition], [Step], [Loop], [Trigger], [Safety], [Budget] or [Input]
//     (definition.go);
//   - a row in the table of that type: definitionFields in decode_definition.go,
//     stepFields in decode_step.go, loopFields in decode_loop.go, triggerFields in
//     decode_trigger.go, all others in decode_parts.go. field_table.go has constructors
//     for the usual types;
//   - rules that involve other fields in decoder.definition or decoder.step;
//   - a line in FORMAT.md, the key in a file of testdata/good, and `make schema`.
//
// Fields of a single step type are not defined here but in the manifest of its plugin.
//
// # Readers of JSON
//
// [Decode], [Problems.Locate] and [Standardize] read a text with comments into nodes with
// positions (syntax.go, node.go). [Rewrite] changes the tree of package hujson, which has
// the comments. Canonical JSON within the process is read as slices of its text
// (jsonscan.go), because references are resolved in every step. All JSON from elsewhere is
// read by package strictjson.
//
// The package has no list of step types. The fields of a type come from the
// manifests of the installed plugins, as a [TypeSet].
package sentinels
