package compilecache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Cache is the folder of compiled code. It has one folder for each module, named
// by the digest of its bytes. wazero keeps its files there in a folder named by its
// version, the architecture and the operating system. A new release of wazero
// therefore finds no code and compiles again, and the code of the old one stays
// usable. Folders with the prefix tempPrefix belong to compiles in progress.
//
// Several processes may share a cache. Files are written elsewhere and renamed, and
// two processes that compile the same module write the same bytes.
type Cache struct {
	root         string
	compileEmpty CompileEmpty
	engineKey    func() (string, error)
}

// CompileEmpty compiles a module without sections into a folder, with the engine
// whose code a cache holds.
type CompileEmpty func(ctx context.Context, dir string) error

const (
	tempPrefix = "new-"
	// tempMaxAge is the age at which a temporary folder no longer belongs to a
	// compile.
	tempMaxAge = time.Hour
)

// New returns a cache in a folder that exists and that no other user can write to.
func New(root string, compileEmpty CompileEmpty) *Cache {
	c := &Cache{root: root, compileEmpty: compileEmpty}
	c.engineKey = sync.OnceValues(c.findEngineKey)
	return c
}

// Open creates the folder, accessible by this user alone, or checks it.
func Open(root string, compileEmpty CompileEmpty) (*Cache, error) {
	if err := makePrivate(root); err != nil {
		return nil, err
	}
	return New(root, compileEmpty), nil
}

// makePrivate creates dir, or checks that other users cannot have written to it,
// because its content is executed as machine code. It removes the read permission of
// others.
func makePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return abi.New(abi.Internal, "open compile cache: "+err.Error())
	}
	info, err := os.Stat(dir)
	if err != nil {
		return abi.New(abi.Internal, "open compile cache: "+err.Error())
	}
	switch {
	case !isOwner(info):
		return &abi.Error{Code: abi.Denied, Message: fmt.Sprintf("open compile cache %q: it belongs to another user", dir),
			Hint: "its content is executed as machine code: choose a folder of your own"}
	case info.Mode().Perm()&0o022 != 0 && !isEmpty(dir):
		return &abi.Error{Code: abi.Denied, Message: fmt.Sprintf("open compile cache %q: others may write to it", dir),
			Hint: "its content is executed as machine code: delete the folder, and the next start creates it again"}
	case info.Mode().Perm()&0o077 != 0:
		if err := os.Chmod(dir, 0o700); err != nil {
			return abi.New(abi.Internal, "open compile cache: "+err.Error())
		}
	}
	return nil
}

// Check creates a folder for compiled code and returns an error if it cannot be
// used as one: this user must own it, this process must be able to write to it, and
// no other user may.
func Check(dir string) error {
	c, err := Open(dir, nil)
	if err != nil {
		return err
	}
	trial, err := c.TempDir()
	if err != nil {
		return err
	}
	return os.Remove(trial)
}

func isEmpty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) == 0
}

// Root returns the folder of the cache.
func (c *Cache) Root() string { return c.root }

// EngineKey identifies what compiled code depends on besides the module: the version
// of wazero and the features of the processor. It is empty where wazero interprets.
func (c *Cache) EngineKey() (string, error) { return c.engineKey() }

// Dir returns the folder of a module's compiled code.
func (c *Cache) Dir(digest string) string { return filepath.Join(c.root, digest) }

// Touch records that a module's code is in use, so that Prune keeps it. Errors are
// ignored, because a read-only cache works too.
func (c *Cache) Touch(digest string) {
	now := time.Now()
	_ = os.Chtimes(c.Dir(digest), now, now)
}

// TempDir creates a folder to compile into, which the caller deletes.
func (c *Cache) TempDir() (string, error) {
	dir, err := os.MkdirTemp(c.root, tempPrefix)
	if err != nil {
		return "", abi.New(abi.Unavailable, "open compile cache: "+err.Error())
	}
	return dir, nil
}

// findEngineKey compiles an empty module and returns the name of wazero's file,
// which is the only place where wazero publishes its key.
func (c *Cache) findEngineKey() (string, error) {
	dir, err := c.TempDir()
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if err := c.compileEmpty(context.Background(), dir); err != nil {
		return "", err
	}
	files, err := codeFiles(dir)
	if err != nil || len(files) == 0 {
		return "", err
	}
	return files[0], nil
}

// codeFiles returns wazero's files in a module's folder, relative to it.
func codeFiles(dir string) ([]string, error) {
	folders, err := os.ReadDir(dir)
	if err != nil {
		return nil, abi.New(abi.Unavailable, "read compile cache: "+err.Error())
	}
	var files []string
	for _, folder := range folders {
		entries, err := os.ReadDir(filepath.Join(dir, folder.Name()))
		if err != nil {
			continue // a file, such as a seal
		}
		for _, e := range entries {
			if name, err := hex.DecodeString(e.Name()); err == nil && len(name) == sha256.Size {
				files = append(files, filepath.Join(folder.Name(), e.Name()))
			}
		}
	}
	return files, nil
}

// Prune deletes the code of modules that no process has loaded for the time unused,
// except of the digests in keep, and leftovers of interrupted compiles. Loaded code
// is in memory, so a process does not need the file of a module that it has loaded.
func (c *Cache) Prune(unused time.Duration, keep []string) error {
	entries, err := os.ReadDir(c.root)
	if err != nil {
		return abi.New(abi.Internal, "prune compile cache: "+err.Error())
	}
	var errs []error
	for _, e := range entries {
		maxAge := unused
		if len(e.Name()) > len(tempPrefix) && strings.HasPrefix(e.Name(), tempPrefix) {
			maxAge = tempMaxAge
		} else if digest, err := hex.DecodeString(e.Name()); err != nil || len(digest) != sha256.Size || slices.Contains(keep, e.Name()) {
			continue
		}
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < maxAge {
			continue // another process may have deleted it
		}
		if err := os.RemoveAll(filepath.Join(c.root, e.Name())); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return abi.New(abi.Internal, "prune compile cache: "+err.Error())
	}
	return nil
}
