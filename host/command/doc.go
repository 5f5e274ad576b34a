// Package command is the registry of the host's commands: operations with JSON
// schemas that steps, models, users, HTTP and MCP clients all call in the same way.
//
// [New] makes a [Command] from a Go function; its schemas are generated from
// the function's parameter and result types. A [Registry] is a value, so two
// hosts can live in one process. Every call goes through [Registry.Call]: it looks up
// the command, checks a model's call against its allow-list, coerces a model's
// arguments, validates them and converts every failure to an *abi.Error.
//
// A command that ran and found a problem, such as a failed test, returns it in its
// result; an error means that the command could not do its work.
package command
