//go:build !unix

package secret

import "io/fs"

// othersMay cannot be told from modes here; the folder's own rights have to do.
func othersMay(fs.FileInfo) bool { return false }
