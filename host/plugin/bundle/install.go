package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/lock"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// InstallOptions configure the installation of a plugin. The zero value works.
type InstallOptions struct {
	// Name is what the file is called. Default: the plugin's own name.
	Name string
	// Replace lets it take the place of a file that was dropped there by hand.
	Replace bool
	// Now is the time noted in the lock. Default time.Now.
	Now func() time.Time
}

// A Change is what an install did.
type Change struct {
	File   string `json:"file"` // in the folder
	Change string `json:"change"`
	// Before is what was there before, nil if nothing that was installed.
	Before *lock.Entry `json:"before,omitempty"`
	Now    lock.Entry  `json:"now"`
	// More is what this version asks for and the one before did not; all that it
	// asks for if there was none.
	More []lock.Permission `json:"more,omitempty"`
}

// What an install did.
const (
	Installed = "installed"
	Updated   = "updated"   // another version, or a file that differed from the lock
	Unchanged = "unchanged" // it was there
)

// Install writes the plugin and its line in the lock. It may be repeated. A crash
// leaves what was there before or what was installed.
func (p *Plugin) Install(ctx context.Context, folder lock.Folder, opt InstallOptions) (Change, error) {
	if opt.Name == "" {
		opt.Name = p.FileName()
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if !lock.ValidName(opt.Name) {
		return Change{}, &abi.Error{Code: abi.BadFields, Message: fmt.Sprintf("install plugin: invalid file name %q", opt.Name), Hint: "letters, digits, . _ - and .wasm at the end"}
	}
	// The decisions below need a folder that no other process changes.
	held, err := folder.Hold(ctx)
	if err != nil {
		return Change{}, fmt.Errorf("install plugin %q: %w", p.Manifest.Name, err)
	}
	defer held.Release()
	there := ""
	code, err := held.Module(opt.Name)
	switch {
	case err == nil:
		there = lock.Digest(code)
	case !errors.Is(err, fs.ErrNotExist):
		return Change{}, fmt.Errorf("install plugin %q: %w", p.Manifest.Name, err)
	}
	if err := p.mayTake(held, opt, there); err != nil {
		return Change{}, err
	}
	c := Change{File: opt.Name, Change: Installed, Now: p.entry(opt.Now()), More: p.Permissions()}
	if before, ok := held.File.Plugins[opt.Name]; ok {
		c.Before, c.Change, c.More = &before, Updated, more(before.Permissions, c.More)
		if before.Digest == p.Digest && there == p.Digest && before.Signer == c.Now.Signer && before.Signature == c.Now.Signature {
			// Installed before, perhaps from elsewhere: nothing that counts has changed.
			c.Now, c.Change = before, Unchanged
			return c, nil
		}
	}
	if err := held.Put(opt.Name, p.Module, c.Now); err != nil {
		return Change{}, fmt.Errorf("install plugin %q: %w", p.Manifest.Name, err)
	}
	return c, nil
}

// mayTake reports whether the plugin may have a name in the folder: not that of
// another plugin, not a second one beside its own, since a host would refuse both
// step types, and not that of a file that was copied there. there is the digest
// of what has the name, "" if nothing has.
func (p *Plugin) mayTake(held *lock.Held, opt InstallOptions, there string) error {
	for file, e := range held.File.Plugins {
		switch {
		case file == opt.Name && e.Name != "" && e.Name != p.Manifest.Name && !opt.Replace:
			return &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("install plugin %q: the file %q is that of plugin %q", p.Manifest.Name, file, e.Name), Hint: "give it another name with --name, or take its place with --replace"}
		case file != opt.Name && e.Name == p.Manifest.Name:
			return &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("install plugin %q: it is installed as %q", p.Manifest.Name, file),
				Hint: fmt.Sprintf("take that one's place with --name %s, or remove it first: sentinel plugin uninstall %s", file, file)}
		}
	}
	_, locked := held.File.Plugins[opt.Name]
	if there != "" && there != p.Digest && !locked && !opt.Replace {
		return &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("install plugin %q: there is a file %q that was not installed, %s", p.Manifest.Name, opt.Name, there),
			Hint: "take its place with --replace, or give the new one another name with --name"}
	}
	return nil
}

// more is what now asks for beyond what before did. It compares names as they are
// written: that a pattern covers another is the grant's to decide, and showing a
// superfluous name is harmless.
func more(before, now []lock.Permission) []lock.Permission {
	var list []lock.Permission
	for _, a := range now {
		has, all := namesOf(before, a.Use)
		if !has {
			list = append(list, a)
			continue
		}
		// No names mean any name where they mean anything.
		if all {
			continue
		}
		if len(a.Names) == 0 {
			list = append(list, a)
			continue
		}
		extra := lock.Permission{Use: a.Use}
		for _, n := range a.Names {
			if !slices.ContainsFunc(before, func(b lock.Permission) bool { return b.Use == a.Use && slices.Contains(b.Names, n) }) {
				extra.Names = append(extra.Names, n)
			}
		}
		if len(extra.Names) > 0 {
			list = append(list, extra)
		}
	}
	return list
}

// namesOf reports whether a use is asked for, and whether without names.
func namesOf(permissions []lock.Permission, use string) (has, all bool) {
	for _, a := range permissions {
		if a.Use == use {
			has, all = true, all || len(a.Names) == 0
		}
	}
	return has, all
}
