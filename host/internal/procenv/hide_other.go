//go:build !linux

package procenv

import (
	"errors"
	"fmt"
)

func hide() error { return fmt.Errorf("hide environment: %w on this system", errors.ErrUnsupported) }

// CloseInherited does nothing: other systems have no call for it.
func CloseInherited() error { return nil }
