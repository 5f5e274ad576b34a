// Package definitions has the verbs that write, check, edit, compare and transfer
// definitions.
package definitions
