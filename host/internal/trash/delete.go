package trash

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
)

const (
	maxNamed = 5    // entries that an error names; the others are counted
	maxPath  = 200  // bytes of a path in an error
	maxText  = 2048 // bytes of an error
)

// Delete deletes a folder with its files, or a file: at any depth, and also where commands
// have taken away the rights to do so. A path without a file is not an error. It deletes
// nothing outside of the folder: links are removed and not followed, and what is mounted
// below is left.
//
// What cannot be deleted is left out and does not keep the rest from being deleted. The error
// names the first such entries by short paths that begin with the name of the folder. When
// ctx ends the rest is left, and another call deletes it.
//
// On systems other than Unix a deep folder costs a descriptor for each level, and the first
// entry that cannot be deleted ends the call.
func Delete(ctx context.Context, dir string) error {
	parent, err := os.Open(filepath.Dir(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	d := deletion{ctx: ctx, name: filepath.Base(dir)}
	if err != nil {
		d.fail("", d.name, err)
		return d.left.err()
	}
	defer parent.Close()
	d.delete(parent)
	return d.left.err()
}

// fail notes an entry of a folder that cannot be deleted, and returns false. Folder is a path
// from the folder that is deleted.
func (d *deletion) fail(folder, name string, err error) bool {
	if folder != "" || name != d.name {
		name = d.name + "/" + folder + "/" + name
	}
	d.left.add(fmt.Errorf("delete %q: %w", textcut.Mark(filepath.Clean(name), maxPath), cause(err)))
	return false
}

// stop notes once that the time is over, and returns false.
func (d *deletion) stop() bool {
	if !d.stopped {
		d.stopped = true
		d.left.add(fmt.Errorf("delete %q: the rest is left for later: %w", textcut.Mark(d.name, maxPath), context.Cause(d.ctx)))
	}
	return false
}

// cause is an error of a file without its path, which may be long, or that of a home.
func cause(err error) error {
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return e.Err
	}
	if e := (*os.LinkError)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

// problems are errors of which the first are kept and the others counted.
type problems struct {
	first []error
	more  int
}

func (p *problems) add(err error) {
	if len(p.first) < maxNamed {
		p.first = append(p.first, err)
	} else {
		p.more++
	}
}

// err returns nil if there are none.
func (p *problems) err() error {
	if len(p.first) == 0 {
		return nil
	}
	return p
}

func (p *problems) Unwrap() []error { return p.first }

func (p *problems) Error() string {
	var text strings.Builder
	for i, err := range p.first {
		if i > 0 {
			text.WriteString("; ")
		}
		text.WriteString(err.Error())
	}
	if p.more > 0 {
		fmt.Fprintf(&text, "; and %d more", p.more)
	}
	return textcut.Mark(text.String(), maxText)
}
