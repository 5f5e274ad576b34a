package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/internal/atomicfile"
	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
	"github.com/sentinel-runtime/sentinel/host/internal/trust"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// AllowedCalls are the kinds of calls that `sentinel do` makes without a question, by folder. They are
// kept in the folder of the user's configuration, where no project can put anything.
//
// # Concurrency
//
// Safe for concurrent use, by several processes too: a writer locks the folder and replaces the file.
type AllowedCalls struct {
	file  string // empty without a folder for the configuration
	trust *trust.Policy
}

// maxAllowedCalls is the largest file of an [AllowedCalls], in bytes.
const maxAllowedCalls = 1 << 20

// AllowedCalls returns those of the user.
func (a *App) AllowedCalls() (*AllowedCalls, error) {
	l, err := a.Settings()
	if err != nil {
		return nil, err
	}
	c := &AllowedCalls{trust: l.Policy}
	if file := config.Path(a.Env.Getenv); file != "" {
		c.file = filepath.Join(filepath.Dir(file), "calls.json")
	}
	return c, nil
}

func (c *AllowedCalls) read() (map[string][]string, error) {
	all := map[string][]string{}
	if c.file == "" {
		return all, nil
	}
	text, err := c.trust.Read(c.file, maxAllowedCalls)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return all, nil
	case err != nil:
		return nil, fmt.Errorf("read allowed calls: %w", err)
	case json.Unmarshal(text, &all) != nil:
		return nil, &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("read allowed calls: %q is damaged", c.file),
			Hint: "delete it; `sentinel do` asks about each kind of call again"}
	}
	return all, nil
}

// Of returns the kinds of calls that are allowed in a folder, sorted.
func (c *AllowedCalls) Of(folder string) ([]string, error) {
	all, err := c.read()
	return all[rootfs.EvalLinks(folder)], err
}

// Has reports whether a kind of call is allowed in a folder.
func (c *AllowedCalls) Has(folder, kind string) (bool, error) {
	list, err := c.Of(folder)
	return slices.Contains(list, kind), err
}

// Add allows a kind of call in a folder. Only a person may have asked for it.
func (c *AllowedCalls) Add(ctx context.Context, folder, kind string) error {
	if c.file == "" {
		return &abi.Error{Code: abi.Unavailable, Permanent: true, Message: "allow call: there is no folder for the user's configuration", Hint: "set HOME or XDG_CONFIG_HOME"}
	}
	return c.change(ctx, folder, func(list []string) []string { return append(list, kind) })
}

// Remove removes a kind of call from a folder, or all with an empty kind. It reports whether there was
// one.
func (c *AllowedCalls) Remove(ctx context.Context, folder, kind string) (had bool, err error) {
	list, err := c.Of(folder)
	if err != nil || len(list) == 0 || kind != "" && !slices.Contains(list, kind) {
		return false, err
	}
	return true, c.change(ctx, folder, func(list []string) []string {
		return slices.DeleteFunc(list, func(k string) bool { return kind == "" || k == kind })
	})
}

// change changes the kinds of a folder while no other process does.
func (c *AllowedCalls) change(ctx context.Context, folder string, change func([]string) []string) error {
	dir := filepath.Dir(c.file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("allow call: %w", err)
	}
	unlock, err := atomicfile.Lock(ctx, dir)
	if err != nil {
		return fmt.Errorf("allow call: %w", err)
	}
	defer unlock()
	all, err := c.read()
	if err != nil {
		return err
	}
	folder = rootfs.EvalLinks(folder)
	list := change(all[folder])
	slices.Sort(list)
	if all[folder] = slices.Compact(list); len(list) == 0 {
		delete(all, folder)
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Replace(c.file, append(text, '\n'), 0o600)
}
