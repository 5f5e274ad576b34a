//go:build !unix

package gitexec

import "os/exec"

// ownGroup does nothing here: the end of the context ends git alone.
func ownGroup(*exec.Cmd) {}
