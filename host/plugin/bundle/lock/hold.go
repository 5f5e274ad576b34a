package lock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/atomicfile"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Held is a folder that no other process writes. Release it.
type Held struct {
	Folder
	File File // the lock, kept as it is written
	dir  *os.File
	step func(done string) error // tests stop here; nil elsewhere
}

// errBusy is the error of a folder that another process has locked.
var errBusy = errors.New("busy")

// Timeout is how long Hold waits for another process, which installs one plugin.
const patience = 15 * time.Second

// Hold makes the folder, waits until no other process writes it, and settles what
// a crash has left open.
func (f Folder) Hold(ctx context.Context) (*Held, error) {
	if err := os.MkdirAll(f.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("make folder of plugins: %w", err)
	}
	dir, err := os.Open(f.Dir)
	if err != nil {
		return nil, fmt.Errorf("open folder of plugins: %w", err)
	}
	// The operating system could wait for us, but not end the wait with a context.
	for began := time.Now(); ; {
		err = tryHold(dir)
		if err == nil {
			break
		}
		if errors.Is(err, errBusy) && time.Since(began) < patience && ctx.Err() == nil {
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		dir.Close() // nothing was taken
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, errBusy):
			return nil, &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("write plugins %q: another process is writing them", f.Dir), Hint: "try again when it is done"}
		}
		return nil, fmt.Errorf("lock folder of plugins: %w", err)
	}
	// Read only now: what it said before was another's to change.
	h := &Held{Folder: f, dir: dir}
	if h.File, err = f.Read(); err == nil {
		err = h.settle()
	}
	if err != nil {
		h.Release()
		return nil, err
	}
	return h, nil
}

// Release lets other processes write. It is idempotent.
func (h *Held) Release() {
	if h.dir != nil {
		h.dir.Close() // the operating system's lock goes with it
		h.dir = nil
	}
}

// settle decides, for each version that a crash left half written, which one the
// module is.
func (h *Held) settle() error {
	changed := false
	for name, e := range h.File.Plugins {
		if e.Next == nil {
			continue
		}
		there := ""
		code, err := h.Module(name)
		if err == nil {
			there = Digest(code)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err // a disk that does not answer decides nothing
		}
		changed = true
		switch {
		case there == e.Next.Digest:
			h.File.Plugins[name] = *e.Next
		case e.Digest == "":
			delete(h.File.Plugins, name)
		default:
			e.Next = nil
			h.File.Plugins[name] = e
		}
	}
	if !changed {
		return nil
	}
	return h.write()
}

// write writes File to the lock.
func (h *Held) write() error {
	h.File.Format = format
	text, err := h.File.encode()
	if err == nil {
		err = atomicfile.Replace(h.Path(FileName), text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("write lock %q: %w", h.Path(FileName), err)
	}
	return nil
}

// Put writes a module and its entry in the lock. A crash leaves the old
// version or the new one, and never a module that its lock refuses.
func (h *Held) Put(name string, module []byte, e Entry) error {
	if !ValidName(name) {
		return abi.New(abi.BadFields, fmt.Sprintf("write plugin: invalid file name %q", name))
	}
	// Digest and size are computed here, so that an entry cannot be of other bytes
	// than those that are written.
	e.Digest, e.Size, e.Next = Digest(module), int64(len(module)), nil
	old := h.File.Plugins[name]
	old.Next = &e
	h.File.Plugins[name] = old
	if err := h.write(); err != nil {
		return err
	}
	if err := h.at("announced"); err != nil {
		return err
	}
	if err := atomicfile.Replace(h.Path(name), module, 0o644); err != nil {
		return fmt.Errorf("write plugin %q: %w", h.Path(name), err)
	}
	if err := h.at("written"); err != nil {
		return err
	}
	h.File.Plugins[name] = e
	return h.write()
}

// Set changes the entry of a module that exists already; nil removes it
// out of the lock.
func (h *Held) Set(name string, e *Entry) error {
	if e == nil {
		delete(h.File.Plugins, name)
	} else {
		h.File.Plugins[name] = *e
	}
	return h.write()
}

// Remove deletes a module and its entry: the module first, since an entry without
// one is harmless.
func (h *Held) Remove(name string) error {
	if !ValidName(name) {
		return abi.New(abi.BadFields, fmt.Sprintf("remove plugin: invalid file name %q", name))
	}
	if err := os.Remove(h.Path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove plugin: %w", err)
	}
	if err := h.at("removed"); err != nil {
		return err
	}
	return h.Set(name, nil)
}

// at is called after each step at which a crash could happen.
func (h *Held) at(done string) error {
	if h.step == nil {
		return nil
	}
	return h.step(done)
}
