// Package command is the registry of what the host can do: named operations
// with schemas, which every caller reaches in the same way.
package command
