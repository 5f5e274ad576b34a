package lock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Folder is where plugins are, with their lock. The zero value is of no use.
type Folder struct {
	Dir string
}

// Path is where a file of the folder is.
func (f Folder) Path(name string) string { return filepath.Join(f.Dir, name) }

// Read reads the lock. No lock is an empty one.
func (f Folder) Read() (File, error) {
	src, err := readBounded(f.Path(FileName), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return File{Format: format, Plugins: map[string]Entry{}}, nil
	}
	var file File
	if err == nil {
		file, err = Decode(src)
	}
	if err != nil {
		return File{}, &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("read lock %q: %v", f.Path(FileName), err),
			Hint: "take the file from your repository again, or remove it and create it with: sentinel plugin lock"}
	}
	if file.Plugins == nil {
		file.Plugins = map[string]Entry{}
	}
	return file, nil
}

// Check returns an error with code denied if a file must not be loaded with this
// digest, with or without its algorithm: it was installed as something else. A
// lock that cannot be read allows nothing.
func (f Folder) Check(name, digest string) error {
	digest, err := ParseDigest(digest)
	if err != nil {
		return err
	}
	file, err := f.Read()
	if err != nil {
		return err
	}
	e, ok := file.Plugins[name]
	if !ok || e.Digest == "" || e.Digest == digest || e.Next != nil && e.Next.Digest == digest {
		return nil
	}
	return &abi.Error{Code: abi.Denied, Permanent: true,
		Message: fmt.Sprintf("it is not what was installed: the file is %s, the lock says %s", digest, e.Digest),
		Hint:    fmt.Sprintf("install it again with `sentinel plugin install`, or, if the change is yours, `sentinel plugin unlock %s`", name),
	}
}

// Module reads a module of the folder.
func (f Folder) Module(name string) ([]byte, error) { return readBounded(f.Path(name), MaxModule) }

// Modules are the names of the modules in the folder, sorted. No folder has none.
func (f Folder) Modules() ([]string, error) {
	entries, err := os.ReadDir(f.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() && filepath.Ext(e.Name()) == ".wasm" {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// readBounded reads a regular file.
func readBounded(path string, most int64) ([]byte, error) {
	b, err := regularfile.Read(path, most)
	if errors.Is(err, regularfile.ErrSize) {
		return nil, &abi.Error{Code: abi.Limit, Permanent: true, Message: fmt.Sprintf("read %q: more than %d bytes", path, most)}
	}
	return b, err
}
