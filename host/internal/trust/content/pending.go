package content

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/regularfile"
)

// A Kind is what an [Item] is.
type Kind string

// Kinds of items.
const (
	Definition Kind = "definition"
	Recipe     Kind = "recipe"
	Plugin     Kind = "plugin"
	State      Kind = "store" // with everything that it has stored
)

// An Item is content that does not count until it is trusted.
type Item struct {
	Key     string // path below the folder, or below the workspace for .continuum
	Path    string
	Kind    Kind
	Content []byte // nil for a store
	Changed bool   // other content of this path was trusted before
	Before  []byte // the newest of it, nil for a plugin
}

// maxFile bounds what is read of one file, in bytes: the limit of a plugin's module.
const maxFile = 32 << 20

// Pending lists the content that does not count, ordered by its path; the store in state,
// if that is not "", comes last. A file that cannot be read is left out: it is not
// executed either.
func (f *Folder) Pending(state ...string) ([]Item, error) {
	if f == nil || f.covered {
		return nil, nil
	}
	var items []Item
	for _, one := range f.files() {
		content, err := regularfile.Read(one.Path, maxFile)
		if err != nil || f.Check(one.Path, content) == nil {
			continue
		}
		one.Content = content
		if f.record != "" {
			if all := f.contents(one.Key); len(all) > 0 {
				one.Changed = true
				if one.Before, err = os.ReadFile(all[0]); err != nil {
					return nil, fmt.Errorf("read trusted content: %w", err)
				}
			}
		}
		items = append(items, one)
	}
	for _, dir := range state {
		if f.stateIsInside(dir) && stateHasContent(dir) && f.CheckState(dir) != nil {
			items = append(items, Item{Key: "state", Path: dir, Kind: State})
		}
	}
	return items, nil
}

// files lists the files that this folder decides about.
func (f *Folder) files() (items []Item) {
	add := func(base, dir string, kind Kind, extensions ...string) {
		entries, _ := os.ReadDir(filepath.Join(base, filepath.FromSlash(dir))) // it need not be there
		for _, e := range entries {
			if !e.IsDir() && slices.Contains(extensions, strings.ToLower(filepath.Ext(e.Name()))) {
				items = append(items, Item{Key: dir + "/" + e.Name(), Path: filepath.Join(base, filepath.FromSlash(dir), e.Name()), Kind: kind})
			}
		}
	}
	add(f.dir, "sentinels", Definition, ".json", ".jsonc")
	add(f.dir, "recipes", Recipe, ".json")
	add(f.dir, "plugins", Plugin, ".wasm")
	if f.workspace != "" {
		add(f.workspace, continuum+"/sentinels", Definition, ".json", ".jsonc")
	}
	return items
}

// Approve records items as trusted, as they were read. state is the state folder that an
// item of kind [State] is about.
func (f *Folder) Approve(items []Item) error {
	if f.record == "" {
		return errors.New("trust folder: " + f.hint())
	}
	if err := f.Begin(); err != nil {
		return err
	}
	for _, i := range items {
		record := func() error { return f.trust(i.Key, i.Content) }
		if i.Kind == State {
			record = func() error { return f.trustState(i.Path) }
		}
		if err := record(); err != nil {
			return err
		}
	}
	return nil
}

// Revoke removes the record. Everything that is in the folder by now has to be trusted
// again. It reports false if there was none.
func (f *Folder) Revoke() (bool, error) {
	if !f.known() {
		return false, nil
	}
	if err := os.Remove(filepath.Join(f.record, folderFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("revoke trust: %w", err)
	}
	if err := os.RemoveAll(f.record); err != nil {
		return false, fmt.Errorf("revoke trust: %w", err)
	}
	return true, nil
}
