package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/lock"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Status is how one file of the folder stands to the lock.
type Status struct {
	File   string      `json:"file"`
	State  string      `json:"state"`
	Digest string      `json:"digest,omitempty"` // of the file
	Entry  *lock.Entry `json:"entry,omitempty"`  // of the lock
	Reason string      `json:"reason,omitempty"` // why it was not locked
}

// The states of files.
const (
	Locked   = "locked"
	Changed  = "changed" // it differs from the lock: it is not loaded
	Missing  = "missing" // in the lock alone
	ByHand   = "unlocked"
	Unusable = "unusable" // no host would load it
)

// Look compares a folder with its lock, by the names of files.
func Look(folder lock.Folder) ([]Status, error) {
	file, err := folder.Read()
	if err != nil {
		return nil, err
	}
	names, err := folder.Modules()
	if err != nil {
		return nil, fmt.Errorf("read folder of plugins: %w", err)
	}
	for name := range maps.Keys(file.Plugins) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	list := []Status{}
	for _, name := range names {
		s := Status{File: name, State: ByHand}
		if e, ok := file.Plugins[name]; ok {
			s.Entry, s.State = &e, Locked
		}
		code, err := folder.Module(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			s.State = Missing
		case err != nil:
			s.State, s.Reason = Unusable, err.Error()
		default:
			s.Digest = lock.Digest(code)
			if folder.Check(name, s.Digest) != nil {
				s.State = Changed
			}
		}
		list = append(list, s)
	}
	return list, nil
}

// Lock adds files that were dropped into a folder by hand to its lock, as they are
// now: the one named, or all that are not in it. It never changes an entry; a file
// that is not what its entry says has to be unlocked first. It returns how every
// file that was asked for stands.
func Lock(ctx context.Context, folder lock.Folder, name string, opt Options) ([]Status, error) {
	if opt.Describe == nil {
		opt.Describe = Describe
	}
	held, err := folder.Hold(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock plugins: %w", err)
	}
	defer held.Release()
	all, err := Look(folder)
	if err != nil {
		return nil, err
	}
	if name != "" {
		all = slices.DeleteFunc(all, func(s Status) bool { return s.File != name })
		if len(all) == 0 {
			return nil, abi.New(abi.NotFound, fmt.Sprintf("lock plugin: no file %q in %q", name, folder.Dir))
		}
	}
	for i := range all {
		s := &all[i]
		if s.State != ByHand || !lock.ValidName(s.File) {
			if !lock.ValidName(s.File) {
				s.State, s.Reason = Unusable, "its name is none that can be locked"
			}
			continue
		}
		p, err := lockable(ctx, folder, s.File, opt)
		if err != nil {
			s.State, s.Reason = Unusable, err.Error()
			continue
		}
		// One write a file: what is locked when something fails stays so.
		e := p.entry(time.Now())
		e.Source = s.File // it came from nowhere that is known
		if err := held.Set(s.File, &e); err != nil {
			return nil, err
		}
		s.State, s.Entry, s.Digest = Locked, &e, e.Digest
	}
	return all, nil
}

// lockable reads a file of the folder and its manifest. Its signature is
// noted if it is beside it and good.
func lockable(ctx context.Context, folder lock.Folder, name string, opt Options) (*Plugin, error) {
	code, err := folder.Module(name)
	if err != nil {
		return nil, err
	}
	p := &Plugin{Module: code, Digest: lock.Digest(code), File: name, Source: name}
	if p.Signature, err = SignatureBeside(folder.Path(name)); err != nil {
		return nil, err
	}
	// It is there and loaded already; what counts is that a signature is not bad.
	opt.AllowUnsigned = true
	if err := p.verify(opt); err != nil {
		return nil, err
	}
	p.Manifest, err = opt.Describe(ctx, code)
	return p, err
}

// Unlock takes a file out of the lock: from then on it counts as dropped by hand.
// It returns the entries of the lock before.
func Unlock(ctx context.Context, folder lock.Folder, name string) (lock.Entry, error) {
	return withEntry(ctx, folder, name, "unlock", func(h *lock.Held, file string) error { return h.Set(file, nil) })
}

// Uninstall deletes a file that was installed, and its entry. It returns what the
// lock said.
func Uninstall(ctx context.Context, folder lock.Folder, name string) (lock.Entry, error) {
	return withEntry(ctx, folder, name, "uninstall", func(h *lock.Held, file string) error { return h.Remove(file) })
}

// withEntry finds an entry by its file or by the name of its plugin.
func withEntry(ctx context.Context, folder lock.Folder, name, verb string, do func(h *lock.Held, file string) error) (lock.Entry, error) {
	held, err := folder.Hold(ctx)
	if err != nil {
		return lock.Entry{}, fmt.Errorf("%s plugin %q: %w", verb, name, err)
	}
	defer held.Release()
	for file, e := range held.File.Plugins {
		if file == name || e.Name == name {
			return e, do(held, file)
		}
	}
	return lock.Entry{}, &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf("%s plugin %q: the lock does not name it", verb, name), Hint: "`sentinel plugin lock --check` shows what it names"}
}
