package files

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
	"github.com/sentinel-runtime/sentinel/host/plugin/hostcall"
	"github.com/sentinel-runtime/sentinel/internal/pathtext"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// maxNames is the maximum number of names in a folder that can be listed: a list is
// sorted, so it has to read all of them.
const maxNames = 100_000

// entry is one name of a folder.
type entry struct {
	Name     string `json:"name"`
	Dir      bool   `json:"dir"`
	Size     int64  `json:"size"` // 0 for a folder
	Modified string `json:"modified"`
}

func entryOf(info fs.FileInfo) entry {
	e := entry{Name: pathtext.Encode(info.Name()), Dir: info.IsDir(), Modified: info.ModTime().UTC().Format(time.RFC3339Nano)}
	if !e.Dir {
		e.Size = info.Size()
	}
	return e
}

// list returns as many names from offset on as fit. Every call reads and sorts all
// names, so a name that is added or removed between two calls can cause a name to
// be missed or listed twice.
func list(t *tree, r *request) (json.RawMessage, error) {
	p, err := t.Resolve(r.path, false)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	dir, err := t.OpenFolder(p)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := namesOf(dir)
	if err != nil {
		return nil, t.Explain(r.path, err)
	}
	names = names[min(r.offset, int64(len(names))):]
	var out struct {
		Entries   []json.RawMessage `json:"entries"`
		Truncated bool              `json:"truncated"`
	}
	out.Entries = []json.RawMessage{}
	free := maxMessage - overhead // an entry with a long name can take more than 256 bytes
	for _, name := range names {
		info, err := dir.Lstat(name)
		if err != nil || !listed(info.Mode()) {
			continue // it was removed or replaced meanwhile
		}
		e, err := hostcall.Answer(entryOf(info))
		if err != nil {
			return nil, err
		}
		if free -= len(e) + 1; free < 0 || len(out.Entries) == maxList {
			out.Truncated = true
			break
		}
		out.Entries = append(out.Entries, e)
	}
	return hostcall.Answer(out)
}

// listed reports whether a list has files of this mode: only those that a guest can
// open.
func listed(mode fs.FileMode) bool { return mode.IsRegular() || mode.IsDir() }

// namesOf returns the names that a guest can use, sorted.
func namesOf(dir *os.Root) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(maxNames + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(entries) > maxNames {
		return nil, &abi.Error{Code: abi.Limit, Field: "path", Permanent: true, Message: fmt.Sprintf("list: the folder has more than %d names", maxNames)}
	}
	var names []string
	for _, e := range entries {
		if listed(e.Type()) && !rootfs.IsTemp(e.Name()) {
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, strings.Compare)
	return names, nil
}

// statResult is the result of stat. Dir and Size are nil for a missing file, to
// distinguish it from false and 0.
type statResult struct {
	Exists   bool   `json:"exists"`
	Dir      *bool  `json:"dir,omitempty"`
	Size     *int64 `json:"size,omitempty"`
	Modified string `json:"modified,omitempty"`
}

// stat returns type, size and time of a file without opening it.
func stat(t *tree, r *request) (json.RawMessage, error) {
	p, err := t.Resolve(r.path, false)
	if err != nil {
		if missing(err) {
			return hostcall.Answer(statResult{})
		}
		return nil, err
	}
	defer p.Close()
	if p.Info == nil {
		return hostcall.Answer(statResult{})
	}
	if !listed(p.Info.Mode()) {
		return nil, &abi.Error{Code: abi.Denied, Field: "path", Permanent: true, Message: fmt.Sprintf("stat %q: not a regular file", r.path)}
	}
	e := entryOf(p.Info)
	return hostcall.Answer(statResult{Exists: true, Dir: &e.Dir, Size: &e.Size, Modified: e.Modified})
}

// missing reports whether err is the error for a path with a missing parent folder.
func missing(err error) bool { return abi.CodeOf(err) == abi.NotFound }
