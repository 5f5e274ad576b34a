package secret

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/sentinel-runtime/sentinel/host/internal/atomicfile"
	"github.com/sentinel-runtime/sentinel/host/internal/trust"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Allowed says which sentinels of a folder may use which secrets. It is kept in the folder of
// the user's configuration, where no project can put anything.
//
// # Concurrency
//
// Safe for concurrent use, as [Vault].
type Allowed struct {
	dir    string
	folder string // the .sentinel folder, without links
	trust  *trust.Policy
}

const allowedFile = "secrets.json"

// NewAllowed returns what is allowed in a .sentinel folder, by the file beside a configuration
// file. Without a configuration file nothing is allowed.
func NewAllowed(config, folder string, policy *trust.Policy) *Allowed {
	a := &Allowed{folder: resolved(folder), trust: policy}
	if config != "" {
		a.dir = filepath.Dir(config)
	}
	return a
}

// resolved returns a path without links; what is missing at its end is kept.
func resolved(path string) string {
	if full, err := filepath.EvalSymlinks(path); err == nil {
		return full
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(resolved(dir), filepath.Base(path))
	}
	return path
}

// sentinelsOf has the names of sentinels by secret, of each folder.
type sentinelsOf map[string]map[string][]string

func (a *Allowed) read() (sentinelsOf, error) {
	all := sentinelsOf{}
	if a.dir == "" {
		return all, nil
	}
	path := filepath.Join(a.dir, allowedFile)
	text, err := a.trust.Read(path, maxVault)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, badFile(path, "cannot be read", err, "see that only you may write it: chmod 600 "+path)
	}
	if json.Unmarshal(text, &all) != nil {
		return nil, badFile(path, "it is damaged", nil, "delete it, and allow the secrets again with `sentinel secret allow`")
	}
	return all, nil
}

// Sentinels returns the sentinels of the folder that may use a secret, sorted.
func (a *Allowed) Sentinels(name string) ([]string, error) {
	all, err := a.read()
	return all[a.folder][name], err
}

// Check returns nil if a sentinel of the folder may use a secret, and else an error with the
// command that allows it.
func (a *Allowed) Check(name, sentinel string) error {
	list, err := a.Sentinels(name)
	if err != nil || slices.Contains(list, sentinel) {
		return err
	}
	return &abi.Error{
		Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("secret %q: sentinel %q may not use it", name, sentinel),
		Hint: fmt.Sprintf("if you trust its steps with the value: sentinel secret allow %s %s", name, sentinel),
	}
}

// Set allows sentinels of the folder to use a secret, or with allow false no longer.
func (a *Allowed) Set(ctx context.Context, name string, sentinels []string, allow bool) error {
	switch {
	case !Named(name):
		return badName(name)
	case a.dir == "":
		return errNoFolder
	}
	return a.change(ctx, func(all sentinelsOf) {
		if all[a.folder] == nil {
			all[a.folder] = map[string][]string{}
		}
		list := slices.DeleteFunc(all[a.folder][name], func(s string) bool { return slices.Contains(sentinels, s) })
		if allow {
			list = append(list, sentinels...)
		}
		slices.Sort(list)
		if list = slices.Compact(list); len(list) == 0 {
			delete(all[a.folder], name)
		} else {
			all[a.folder][name] = list
		}
	})
}

// Forget removes the permissions to use a secret in all folders, and returns how many there were. It is for a secret that is
// removed: another value of its name, later, is another secret.
func (a *Allowed) Forget(ctx context.Context, name string) (n int, err error) {
	if a.dir == "" {
		return 0, nil
	}
	err = a.change(ctx, func(all sentinelsOf) {
		for _, folder := range all {
			n += len(folder[name])
			delete(folder, name)
		}
	})
	return n, err
}

// Revoke removes all permissions of the folder, and reports whether there were any.
func (a *Allowed) Revoke(ctx context.Context) (had bool, err error) {
	all, err := a.read()
	if err != nil || len(all[a.folder]) == 0 {
		return false, err
	}
	return true, a.change(ctx, func(all sentinelsOf) { delete(all, a.folder) })
}

// change changes the file while no other process does.
func (a *Allowed) change(ctx context.Context, change func(all sentinelsOf)) error {
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return fmt.Errorf("allow secret: %w", err)
	}
	unlock, err := atomicfile.Lock(ctx, a.dir)
	if err != nil {
		return fmt.Errorf("allow secret: %w", err)
	}
	defer unlock()
	all, err := a.read()
	if err != nil {
		return err
	}
	change(all)
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(a.dir, allowedFile), append(text, '\n'), 0o600)
}
