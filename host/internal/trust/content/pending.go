package content

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
)

// A Kind is what an [Item] is.
type Kind string

// Kinds of items.
const (
	Definition Kind = "definition"
	Recipe     Kind = "recipe"
	Plugin     Kind = "plugin"
	State      Kind = "store" // with everything that it has stored

	Environment Kind = "environment file" // variables of programs, which a definition names
	Link        Kind = "symbolic link"    // the folder's own name; its content is the path that it leads to
)

// An Item is content that does not count until it is trusted.
type Item struct {
	Key     string // path below the folder, or for .continuum from the project that it is in
	Path    string
	Kind    Kind
	Content []byte // nil for a store
	Changed bool   // other content of this path was trusted before
	Before  []byte // the newest of it, nil for a plugin and an environment file
	// Take is of a store: the user takes it over with all that it would execute. Otherwise [Folder.Approve] moves its
	// content to a folder within it ([AsideFolder]), and a new store begins.
	Take bool

	of   *trusted
	link string // of its place; such an item cannot be trusted
}

// maxFile bounds what is read of one file, in bytes: the limit of a plugin's module.
const maxFile = 32 << 20

// Pending lists the content that does not count, ordered by its path; the folder's own
// name, if it is a link, comes first, and the store in state, if that is not "", last. A file that
// cannot be read is left out: it is not executed either. So is a store of which git tracks files,
// which cannot be trusted.
func (f *Folder) Pending(state ...string) ([]Item, error) {
	if f == nil {
		return nil, nil
	}
	all, _, err := f.untrusted()
	if err != nil {
		return nil, err
	}
	items := slices.DeleteFunc(all, func(i Item) bool { return i.link != "" })
	if f.CheckLink() != nil {
		link := Item{Key: filepath.Base(f.own.name), Path: f.own.name, Kind: Link, Content: []byte("leads to " + f.own.dir), of: f.own}
		items = slices.Insert(items, 0, link)
	}
	for _, dir := range state {
		if f.stateIsInside(dir) && stateHasContent(dir) && f.CheckState(dir) != nil && f.CheckTracked(dir) == nil {
			items = append(items, Item{Key: "state", Path: dir, Kind: State})
		}
	}
	return items, nil
}

// Links returns an error for each symbolic link by which a file of the folder is found. Such
// files cannot be trusted.
func (f *Folder) Links() ([]error, error) {
	if f == nil {
		return nil, nil
	}
	_, links, err := f.untrusted()
	return links, err
}

// untrusted lists the files that do not count, with those that are found by a link, and the
// errors about the links.
func (f *Folder) untrusted() (items []Item, links []error, err error) {
	named := map[string]bool{}
	files := f.files()
	for _, one := range files {
		content, err := regularfile.Read(one.Path, maxFile)
		if err != nil {
			continue
		}
		refused := f.Check(one.Path, content)
		if refused == nil {
			continue
		}
		if one.link != "" && !named[one.link] {
			named[one.link] = true
			links = append(links, refused)
		}
		one.Content = content
		if one.of.record != "" {
			if all := one.of.contents(one.Key); len(all) > 0 {
				one.Changed = true
				if one.Before, err = os.ReadFile(all[0]); err != nil {
					return nil, nil, fmt.Errorf("read trusted content: %w", err)
				}
			}
		}
		items = append(items, one)
	}
	environments, err := f.environments(files)
	return append(items, environments...), links, err
}

// files lists the files that this folder decides about.
func (f *Folder) files() (items []Item) {
	add := func(dir string, kind Kind, extensions ...string) {
		entries, _ := os.ReadDir(dir) // it need not be there
		for _, e := range entries {
			if e.IsDir() || !slices.Contains(extensions, strings.ToLower(filepath.Ext(e.Name()))) {
				continue
			}
			path := filepath.Join(dir, e.Name())
			at, judged := f.find(path)
			// The folders may be the same by a link.
			if judged && !slices.ContainsFunc(items, func(i Item) bool { return i.Key == at.key }) {
				items = append(items, Item{Key: at.key, Path: path, Kind: kind, of: at.of, link: at.link})
			}
		}
	}
	add(filepath.Join(f.own.dir, "sentinels"), Definition, ".json", ".jsonc")
	add(filepath.Join(f.own.dir, "recipes"), Recipe, ".json", ".jsonc") // ".jsonc" as a child of one
	add(filepath.Join(f.own.dir, "plugins"), Plugin, ".wasm")
	for _, project := range f.projects {
		add(filepath.Join(project.project, continuum, "sentinels"), Definition, ".json", ".jsonc")
	}
	return items
}

// Approve records items as trusted, as they were read; see [Item.Take] for a store.
func (f *Folder) Approve(items []Item) error {
	if f.own.record == "" {
		return errors.New("trust folder: " + f.hint())
	}
	begin := f.Begin
	if slices.ContainsFunc(items, func(i Item) bool { return i.Kind == Link && string(i.Content) == "leads to "+f.own.dir }) {
		begin = f.begin // the user has seen where it leads
	}
	if err := begin(); err != nil {
		return err
	}
	for _, i := range items {
		if i.Kind == Link { // the record is of the folder that it leads to
			continue
		}
		record := func() error { return i.of.trust(i.Key, i.Content) }
		if i.Kind == State {
			record = func() error {
				if !i.Take {
					if err := setAside(i.Path); err != nil {
						return err
					}
				}
				return f.trustState(i.Path)
			}
		}
		if err := record(); err != nil {
			return err
		}
	}
	return nil
}

// Revoke removes the record. Everything that is in the folder by now has to be trusted
// again. It reports false if there was none.
func (f *Folder) Revoke() (revoked bool, err error) {
	for _, t := range f.places() {
		one, err := t.revoke()
		if revoked = revoked || one; err != nil {
			return revoked, err
		}
	}
	return revoked, nil
}
