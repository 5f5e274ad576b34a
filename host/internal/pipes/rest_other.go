//go:build !unix

package pipes

import "os"

// rest passes on nothing: the pipes of this system have no deadlines.
func rest(*os.File, []byte, func([]byte) error) error { return nil }
