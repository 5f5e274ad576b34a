//go:build !linux

package checkpoint

import "errors"

func (f *openedFolder) exchange(one, other string) error { return f.exchangeByNames(one, other) }

func (f *openedFolder) renameNew(string, string) error { return errors.ErrUnsupported }

// mounted is not known here.
func (f *openedFolder) mounted(string) bool { return false }
