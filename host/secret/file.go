package secret

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// readFile reads a value from a file that is its owner's alone. Links are
// followed, since the operator's own configuration names the path.
func readFile(name, path string) (string, error) {
	// Without blocking, for a pipe in its place would hold the request for ever.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", missing(name)
	}
	if err != nil {
		return "", unusable(name, "is in a file that cannot be opened", "see that the host's user may read the file")
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil || !info.Mode().IsRegular():
		return "", unusable(name, "is in what is no regular file", "name the file that holds the value alone")
	case othersMay(info):
		return "", unusable(name, "is in a file that others may read or change", "chmod 600 the file, and let it belong to the host's user")
	}
	b, err := io.ReadAll(io.LimitReader(f, maxValue+2)) // one more than may be, with its line end
	if err != nil {
		return "", unusable(name, "is in a file that cannot be read", "see why: a disk that is away, perhaps")
	}
	// An editor ends the last line of what it writes; that is not of the value.
	value := strings.TrimRight(string(b), "\r\n")
	if value == "" {
		return "", missing(name)
	}
	return value, nil
}
