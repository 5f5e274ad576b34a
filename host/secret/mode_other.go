//go:build !unix

package secret

import "io/fs"

// othersMay is always false, because this system has no Unix modes.
func othersMay(fs.FileInfo) bool { return false }
