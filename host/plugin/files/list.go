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
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
	"github.com/sentinel-runtime/sentinel/host/plugin/hostcall"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// maxNames is how many names a folder may have to be listed: all are needed to
// sort them.
const maxNames = 100_000

// entry is one name of a folder.
type entry struct {
	Name     string `json:"name"`
	Dir      bool   `json:"dir"`
	Size     int64  `json:"size"` // 0 of a folder
	Modified string `json:"modified"`
}

func entryOf(info fs.FileInfo) entry {
	e := entry{Name: info.Name(), Dir: info.IsDir(), Modified: info.ModTime().UTC().Format(time.RFC3339Nano)}
	if !e.Dir {
		e.Size = info.Size()
	}
	return e
}

// list answers with names from offset on, as many as fit. Every page sorts all
// names anew: what comes and goes between two pages may be missed or come twice,
// as in any listing of a folder that is being changed.
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
	room := maxMessage - frame // long names in odd letters take more than 256 bytes each
	for _, name := range names {
		info, err := dir.Lstat(name)
		if err != nil || !listed(info.Mode()) {
			continue // it went away, or became something else
		}
		e, err := hostcall.Answer(entryOf(info))
		if err != nil {
			return nil, err
		}
		if room -= len(e) + 1; room < 0 || len(out.Entries) == maxList {
			out.Truncated = true
			break
		}
		out.Entries = append(out.Entries, e)
	}
	return hostcall.Answer(out)
}

// listed reports whether a guest is told of something: what it could not open
// is not there for it.
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
		// A name that is no text cannot be in a request.
		if listed(e.Type()) && utf8.ValidString(e.Name()) && !rootfs.IsTemp(e.Name()) {
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, strings.Compare)
	return names, nil
}

// facts is the answer to stat. Pointers, since false and 0 are facts too, while
// of what does not exist there are none.
type facts struct {
	Exists   bool   `json:"exists"`
	Dir      *bool  `json:"dir,omitempty"`
	Size     *int64 `json:"size,omitempty"`
	Modified string `json:"modified,omitempty"`
}

// stat says what is at a path, without opening it.
func stat(t *tree, r *request) (json.RawMessage, error) {
	p, err := t.Resolve(r.path, false)
	if err != nil {
		if gone(err) {
			return hostcall.Answer(facts{})
		}
		return nil, err
	}
	defer p.Close()
	if p.Info == nil {
		return hostcall.Answer(facts{})
	}
	if !listed(p.Info.Mode()) {
		return nil, &abi.Error{Code: abi.Denied, Field: "path", Permanent: true, Message: fmt.Sprintf("stat %q: not a regular file", r.path)}
	}
	e := entryOf(p.Info)
	return hostcall.Answer(facts{Exists: true, Dir: &e.Dir, Size: &e.Size, Modified: e.Modified})
}

// gone reports whether a path leads to nothing: a folder on the way is missing.
func gone(err error) bool { return abi.CodeOf(err) == abi.NotFound }
