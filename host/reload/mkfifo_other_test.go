//go:build !unix

package reload_test

import "errors"

func mkfifo(string) error { return errors.ErrUnsupported }
