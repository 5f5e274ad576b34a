//go:build !unix

package gitexec

import "os/exec"

// endWithContext does nothing here: the end of the context kills git alone.
func endWithContext(*exec.Cmd) (stop func()) { return func() {} }
