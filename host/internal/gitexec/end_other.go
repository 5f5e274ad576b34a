//go:build !unix

package gitexec

import "os/exec"

// bindLifetime does nothing here: the end of the context kills git alone, and git survives a
// host that is killed.
func bindLifetime(*exec.Cmd) (done func()) { return func() {} }
