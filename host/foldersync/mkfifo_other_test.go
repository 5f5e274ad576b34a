//go:build !unix

package foldersync_test

import "errors"

func mkfifo(string) error { return errors.ErrUnsupported }
