package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// OpenBelow opens the folder rest, a relative path, below the folder base. No part of rest may be a
// link, also if links change during the call. base is resolved as usual.
func OpenBelow(base, rest string) (*os.Root, error) {
	root, err := os.OpenRoot(base)
	if err != nil {
		return nil, err
	}
	defer root.Close() // nothing was written through it
	if root, err = Enter(root, rest); err != nil {
		return nil, fmt.Errorf("open %q in %q: %w", rest, base, err)
	}
	return root, nil
}

// Enter opens the folder rest, a relative path, below an open one. No part of rest may be a link, also if links
// change during the call.
func Enter(root *os.Root, rest string) (*os.Root, error) {
	at, err := root.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	for part := range strings.SplitSeq(filepath.Clean(rest), string(filepath.Separator)) {
		if part == "." {
			continue
		}
		next, err := EnterFolder(at, part)
		_ = at.Close() // nothing was written through it
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// EnterFolder opens a folder in an open one, and returns an error if it is a link, also if it becomes one during the
// call.
func EnterFolder(root *os.Root, part string) (*os.Root, error) {
	seen, err := root.Lstat(part)
	if err != nil {
		return nil, err
	}
	if seen.Mode()&os.ModeSymlink != 0 {
		return nil, &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("%q is a link", part)}
	}
	next, err := openSame(root, part, seen)
	if errors.Is(err, errReplaced) {
		err = &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("%q was replaced during the call", part)}
	}
	return next, err
}

var errReplaced = errors.New("replaced during the call")

// openSame opens a folder in another one that has been looked at. The error is errReplaced if it is
// another one by now.
func openSame(in *os.Root, name string, seen fs.FileInfo) (*os.Root, error) {
	dir, err := in.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	info, err := dir.Stat(".")
	if err == nil && !os.SameFile(seen, info) {
		err = errReplaced
	}
	if err != nil {
		_ = dir.Close() // it was only looked at
		return nil, err
	}
	return dir, nil
}
