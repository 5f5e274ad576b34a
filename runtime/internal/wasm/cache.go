package wasm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// cache is the folder of compiled code. Each module has a folder in it, named by
// the digest of its bytes; in that the engine keeps its files, in one more folder
// named by its own version, the architecture and the system. So a new release of
// the engine finds nothing and compiles anew, beside what the old one goes on
// using. Folders that begin with temporary are being filled.
//
// Several processes may use one cache. Every file comes into its place whole by a
// rename, and two that compile the same module put the same bytes there.
type cache struct {
	root string
	// made is what compiled code depends on besides the module: it changes with
	// the engine's version and the processor's features. Empty where the engine
	// compiles nothing.
	made func() (string, error)
}

const (
	temporary = "new-"
	// abandoned is how old a temporary folder is that nobody fills any more.
	abandoned = time.Hour
)

func newCache(root string) *cache {
	c := &cache{root: root}
	c.made = sync.OnceValues(c.fingerprint)
	return c
}

// openCache makes a folder that nobody else can read or write.
func openCache(root string) (*cache, error) {
	if err := ownDir(root); err != nil {
		return nil, err
	}
	return newCache(root), nil
}

// ownDir makes dir, or checks that it can be trusted: what is in it is run as it
// is. A folder that others could only read is taken away from them.
func ownDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return abi.New(abi.Internal, "open compile cache: "+err.Error())
	}
	info, err := os.Stat(dir)
	if err != nil {
		return abi.New(abi.Internal, "open compile cache: "+err.Error())
	}
	switch {
	case !owned(info):
		return &abi.Error{Code: abi.Denied, Message: fmt.Sprintf("open compile cache %q: it belongs to another user", dir),
			Hint: "its content is run as machine code: choose a folder of your own"}
	case info.Mode().Perm()&0o022 != 0 && !isEmpty(dir):
		return &abi.Error{Code: abi.Denied, Message: fmt.Sprintf("open compile cache %q: others may write to it", dir),
			Hint: "its content is run as machine code: delete it, and it is made anew"}
	case info.Mode().Perm()&0o077 != 0:
		if err := os.Chmod(dir, 0o700); err != nil {
			return abi.New(abi.Internal, "open compile cache: "+err.Error())
		}
	}
	return nil
}

// CheckCache makes a folder for compiled code and reports whether it can be
// one: it is this user's, nobody else can write to it, and this process can.
func CheckCache(dir string) error {
	c, err := openCache(dir)
	if err != nil {
		return err
	}
	trial, err := c.fill()
	if err != nil {
		return err
	}
	return os.Remove(trial)
}

func isEmpty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) == 0
}

// dir is the folder of a module's compiled code.
func (c *cache) dir(digest string) string { return filepath.Join(c.root, digest) }

// touch notes that a module's code is in use. A cache that cannot be written to
// works as well.
func (c *cache) touch(digest string) {
	now := time.Now()
	_ = os.Chtimes(c.dir(digest), now, now)
}

// fill returns a folder to compile into.
func (c *cache) fill() (string, error) {
	dir, err := os.MkdirTemp(c.root, temporary)
	if err != nil {
		return "", abi.New(abi.Unavailable, "open compile cache: "+err.Error())
	}
	return dir, nil
}

// fingerprint compiles an empty module and looks at what the engine calls the
// file: it says so nowhere else.
func (c *cache) fingerprint() (string, error) {
	dir, err := c.fill()
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if err := compileEmpty(context.Background(), dir); err != nil {
		return "", err
	}
	files, err := codeFiles(dir)
	if err != nil || len(files) == 0 {
		return "", err
	}
	return files[0], nil
}

// codeFiles returns the engine's files of a module's folder, relative to it.
func codeFiles(dir string) ([]string, error) {
	folders, err := os.ReadDir(dir)
	if err != nil {
		return nil, abi.New(abi.Unavailable, "read compile cache: "+err.Error())
	}
	var files []string
	for _, folder := range folders {
		entries, err := os.ReadDir(filepath.Join(dir, folder.Name()))
		if err != nil {
			continue // a seal is a file
		}
		for _, e := range entries {
			if name, err := hex.DecodeString(e.Name()); err == nil && len(name) == sha256.Size {
				files = append(files, filepath.Join(folder.Name(), e.Name()))
			}
		}
	}
	return files, nil
}

// A seal says that a module's code is whole, by file. Code without it was
// compiled in this process, by a module that was trusted then, or is damaged.
type seal map[string]sealed

type sealed struct {
	Size int64  `json:"size"`
	CRC  uint32 `json:"crc"` // of Castagnoli: it finds damage, not intent
}

// sealName is where the seal of this code is, in the module's folder. It differs
// for any other code: of another release that rewrites differently, of another
// engine.
func (c *cache) sealName(code []byte) (string, error) {
	made, err := c.made()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\nguarded\n%d\n", made, len(code)) // with the listeners of wasi.go, which are in the engine's own key too
	sum.Write(code)
	return "sealed-" + hex.EncodeToString(sum.Sum(nil)[:16]) + ".json", nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sealFile(path string) (sealed, error) {
	b, err := os.ReadFile(path)
	return sealed{Size: int64(len(b)), CRC: crc32.Checksum(b, castagnoli)}, err
}

// whole reports whether the sealed code is there as it was made. damage says
// what is wrong with code that was there; it is gone then.
func (c *cache) whole(digest, name string) (ok bool, damage error) {
	dir := c.dir(digest)
	text, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var files seal
	if err == nil {
		err = json.Unmarshal(text, &files)
	}
	if err == nil && len(files) == 0 {
		err = errors.New("the seal names no file")
	}
	for file, want := range files {
		if !filepath.IsLocal(file) {
			err = fmt.Errorf("the seal names %q", file)
			break
		}
		got, readErr := sealFile(filepath.Join(dir, file))
		if err = readErr; err == nil && got != want {
			err = fmt.Errorf("%s has changed", file)
		}
		if err != nil {
			break
		}
	}
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.New("a file is missing")
		}
		// The engine would take what it can read of a damaged file.
		return false, errors.Join(err, os.RemoveAll(dir))
	}
	c.touch(digest)
	return true, nil
}

// adopt takes over what was compiled into a temporary folder.
func (c *cache) adopt(from, digest, name string) error {
	files, err := codeFiles(from)
	if err == nil && len(files) == 0 {
		err = errors.New("there is no compiled code")
	}
	dir, all := c.dir(digest), seal{}
	for _, file := range files {
		if err != nil {
			break
		}
		if all[file], err = sealFile(filepath.Join(from, file)); err != nil {
			break
		}
		if err = os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o700); err == nil {
			err = os.Rename(filepath.Join(from, file), filepath.Join(dir, file))
		}
	}
	if err == nil {
		err = writeSeal(from, filepath.Join(dir, name), all)
	}
	if err != nil {
		return abi.New(abi.Unavailable, "keep compiled code: "+err.Error())
	}
	return nil
}

// writeSeal writes a seal by way of a folder of the same file system.
func writeSeal(by, path string, s seal) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	part := filepath.Join(by, "seal")
	if err := os.WriteFile(part, text, 0o600); err != nil {
		return err
	}
	return os.Rename(part, path)
}

// prune deletes the code of modules that no process has loaded for so long, but
// for those named, and what an interrupted compile left. Code in use is in
// memory: a process whose file goes away notices nothing.
func (c *cache) prune(unused time.Duration, keep []string) error {
	entries, err := os.ReadDir(c.root)
	if err != nil {
		return abi.New(abi.Internal, "prune compile cache: "+err.Error())
	}
	var errs []error
	for _, e := range entries {
		most := unused
		if len(e.Name()) > len(temporary) && e.Name()[:len(temporary)] == temporary {
			most = abandoned
		} else if digest, err := hex.DecodeString(e.Name()); err != nil || len(digest) != sha256.Size || slices.Contains(keep, e.Name()) {
			continue
		}
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < most {
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
