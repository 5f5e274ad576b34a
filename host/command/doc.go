// Package command is the part of the HOST process that names its powers: the
// registry of operations with schemas, which steps, models, people, HTTP and
// MCP all reach in the same way.
//
// [New] makes a [Command] from a Go function; its schemas are generated from
// the function's parameter and result types. A [Registry] is a value, so two
// hosts can live in one process. [Registry.Call] is the only way in: it finds
// the command, holds a model's call to its allow-list, coerces a model's
// arguments, validates them and turns whatever goes wrong into an *abi.Error.
//
// A command that ran and found something bad returns a result that says so;
// an error means that it could not do what was asked (DESIGN section 3).
package command
