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
// A key of the format is one row of the table in fields.go: its name and aliases, its
// documentation, its schema, an example, and how it is decoded (with its checks) and
// encoded. Decode, Encode, Schema, the hints for unknown keys, Diff, Rewrite, Locate and
// the tables of FORMAT.md come from that row. A new field needs:
//
//   - a Go field in [Definition], [Step], [Loop], [Trigger], [Safety], [Budget], [Input],
//     [OnError] or [RetryPolicy] (definition.go);
//   - a row in fields.go; field_table.go has constructors for the usual types;
//   - only if a rule involves other fields, code in decoder.definition or decoder.step;
//   - go test ./sentinels -update, which writes its line in FORMAT.md, and make schema.
//
// A test decodes, encodes, compares, rewrites and validates the example of each row, with
// the row and without it. Another finds Go fields that no row sets.
//
// Fields of a single step type are not defined here but in the manifest of its plugin.
//
// # Reading JSON
//
// All JSON is read by package strictjson. Texts become one kind of syntax tree, which has
// the place of every key and value: [Decode] and [Problems.Locate] take positions from it,
// [Rewrite] the text between the nodes, [Diff] compares nodes. Values
// within the process can be much larger than a definition and are valid; [Canonical] and
// package reference, which resolves references, therefore read only the parts that they
// need, without a tree.
//
// The package has no list of step types. The fields of a type come from the
// manifests of the installed plugins, as a [TypeSet].
package sentinels
