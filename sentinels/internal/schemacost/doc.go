// Package schemacost limits the JSON Schemas that plugins declare for the fields of their
// step types, and the work of validating values against them. Schemas come from the
// manifests of plugins, which are not trusted, and the schema library has no limits of
// its own.
//
// Package sentinels calls [Check] before it compiles a schema, and [Size.TooCostly] before
// it validates the fields of a step. Nothing here compiles a schema or keeps state.
package schemacost
