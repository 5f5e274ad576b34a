// Package reference reads and resolves references to variables, such as
// $review.usage.tokens or $list[0], in the texts of definitions.
//
// The same text means different things in different fields, and each has its function:
//
//   - a JSON value whose strings contain references: [Resolve], or [Shape.Resolve] where a
//     schema says which values must be strings;
//   - text alone, such as the name of a command: [ResolveText];
//   - a shell line, in which a value must never become code: [ShellLine];
//   - a condition, which is JavaScript: [NamesInExpression] and [TestedIn]. They only find
//     the references; the engine evaluates them.
//
// [Path] is the part of a variable that a reference means, [Text] how it is inserted in
// other text.
//
// The engine resolves the fields of a step before each attempt, with a [Lookup] in the
// variables of the run. Package sentinels uses the same functions to find mistakes before
// a run: names that no step sets, references that the shell would not expand.
//
// Values are valid JSON, but can be as large as a variable. They are read part by part,
// without a tree (type strictjson.Cursor).
//
// # Concurrency
//
// All functions are safe for concurrent use if the Lookup is. A [Shape] is immutable, a
// [Shapes] is for one goroutine.
package reference
