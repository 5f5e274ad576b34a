package rootfs

import (
	"fmt"
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
	for part := range strings.SplitSeq(filepath.Clean(rest), string(filepath.Separator)) {
		if part == "." {
			continue
		}
		next, err := enterFolder(root, part)
		_ = root.Close() // nothing was written through it
		if err != nil {
			return nil, fmt.Errorf("open %q in %q: %w", rest, base, err)
		}
		root = next
	}
	return root, nil
}

// enterFolder opens a folder in another one, and returns an error if it is a link.
func enterFolder(root *os.Root, part string) (*os.Root, error) {
	seen, err := root.Lstat(part)
	if err != nil {
		return nil, err
	}
	if seen.Mode()&os.ModeSymlink != 0 {
		return nil, &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("%q is a link", part)}
	}
	next, err := root.OpenRoot(part)
	if err != nil {
		return nil, err
	}
	info, err := next.Stat(".")
	if err == nil && !os.SameFile(seen, info) {
		err = &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("%q was replaced during the call", part)}
	}
	if err != nil {
		_ = next.Close() // as above
		return nil, err
	}
	return next, nil
}
