package secret

import (
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// readFile reads a value from a file that is its owner's alone. Links are
// followed, since the operator's own configuration names the path.
func (s *Source) readFile(name, path string) (string, error) {
	f, info, err := s.opt.Trust.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", missing(name)
	}
	if errors.Is(err, regularfile.ErrKind) {
		return "", unusable(name, "is not in a regular file", "name a file that contains only the value")
	}
	if abi.CodeOf(err) == abi.Denied {
		return "", unusable(name, "is in a file that others may read or change", "sentinel doctor names the file or folder, and how to mend it")
	}
	if err != nil {
		return "", unusable(name, "is in a file that cannot be opened", "see that the host's user may read the file")
	}
	defer f.Close()
	if othersMay(info) {
		return "", unusable(name, "is in a file that others may read or change", "chmod 600 the file, and let it belong to the host's user")
	}
	return readValue(name, f)
}

// readCredential reads a credential of systemd. Its folder is readable for the service alone,
// by an access list that shows as the mode of a group.
func (s *Source) readCredential(name, path string) (string, error) {
	f, info, err := regularfile.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", missing(name)
	}
	if err != nil {
		return "", unusable(name, "is a credential of systemd that cannot be opened", "see LoadCredential= in the unit")
	}
	defer f.Close()
	if info.Mode().Perm()&0o027 != 0 {
		return "", unusable(name, "is a credential of systemd that others may read or change", "the folder in CREDENTIALS_DIRECTORY is to be that of systemd")
	}
	return readValue(name, f)
}

func readValue(name string, f io.Reader) (string, error) {
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
