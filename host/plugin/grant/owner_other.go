//go:build !unix

package grant

import "io/fs"

// othersMay cannot be derived from modes here; the access list of the folder protects it.
func othersMay(fs.FileInfo) bool { return false }
