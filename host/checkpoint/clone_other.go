//go:build !linux

package checkpoint

import (
	"errors"
	"os"
)

// cloneFile is not supported here.
func cloneFile(_, _ *os.File) error { return errors.ErrUnsupported }
