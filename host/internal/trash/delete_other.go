//go:build !unix

package trash

import (
	"context"
	"os"
	"path/filepath"
)

// A deletion is one call of [Delete].
type deletion struct {
	ctx     context.Context
	name    string // of the folder
	left    problems
	stopped bool
}

// delete leaves it to the standard library, which removes links and does not follow them.
func (d *deletion) delete(parent *os.File) {
	if d.ctx.Err() != nil {
		d.stop()
	} else if err := os.RemoveAll(filepath.Join(parent.Name(), d.name)); err != nil {
		d.fail("", d.name, err)
	}
}
