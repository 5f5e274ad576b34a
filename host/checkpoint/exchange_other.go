//go:build !linux

package checkpoint

import "errors"

func (a *applier) exchange(one, other string) error { return a.exchangeByNames(one, other) }

func (a *applier) renameNew(string, string) error { return errors.ErrUnsupported }
