//go:build !linux

package procenv

import (
	"errors"
	"fmt"
)

func hide() error { return fmt.Errorf("hide environment: %w on this system", errors.ErrUnsupported) }
