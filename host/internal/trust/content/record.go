package content

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/atomicfile"
	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// trusted is what is recorded of one folder: that it is known, and which contents of its
// files count.
type trusted struct {
	dir     string // real path
	name    string // path by which it was named
	project string // real path of the folder that it is in by its name
	record  string // folder of the record, "" if there can be none
	covered bool   // it is below a root of the user
}

// newTrusted returns the record of a folder, which need not exist. Where the folder is a link, as a clone
// may have it, the record is of the link with what it leads to: the steps of a trusted definition execute
// files of the project, such as a Makefile, so the definition says nothing about another project.
func newTrusted(dir string, opt Options) *trusted {
	t := &trusted{dir: rootfs.EvalLinks(dir), name: filepath.Clean(dir), project: rootfs.EvalLinks(filepath.Dir(dir))}
	name, link := t.dir, filepath.Join(t.project, filepath.Base(dir))
	if link != t.dir {
		name = link + "\x00" + t.dir
	}
	if opt.Records != "" {
		t.record = filepath.Join(opt.Records, hash([]byte(name))[:32])
	}
	t.covered = slices.ContainsFunc(opt.Roots, func(root string) bool {
		root = rootfs.EvalLinks(filepath.Clean(root))
		has := func(path string) bool {
			_, inside := below(root, path)
			return inside || root == path
		}
		return has(t.dir) && (link == t.dir || has(t.project))
	})
	return t
}

// isLink reports whether the folder is the .sentinel of a project and a symbolic link. Links above it do not count,
// nor those to a folder that the user has named.
func (t *trusted) isLink() bool {
	return filepath.Base(t.name) == ".sentinel" && firstLink(filepath.Dir(t.name), ".sentinel") != ""
}

// has reports whether content of a key is recorded.
func (t *trusted) has(key string, content []byte) bool {
	return t.record != "" && exists(t.contentFile(key, content))
}

// record is the content of folderFile.
type record struct {
	Folder string `json:"folder"`          // for people
	State  string `json:"state,omitempty"` // identity of the trusted state folder
	Store  string `json:"store,omitempty"` // identity in the store of it, once that was opened
}

// known reports whether the user or this program began a record of the folder.
func (t *trusted) known() bool {
	_, err := os.Stat(filepath.Join(t.record, folderFile))
	return t.record != "" && err == nil
}

// contentFile is the file that records a content. Line ends of texts do not count: git
// converts them, and they change no definition.
func (t *trusted) contentFile(key string, content []byte) string {
	if !strings.HasSuffix(key, ".wasm") {
		content = bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
	}
	return filepath.Join(t.recordOf(key), hash(content))
}

// recordOf is the folder with what is recorded of one path.
func (t *trusted) recordOf(key string) string { return filepath.Join(t.record, hash([]byte(key))[:32]) }

func (t *trusted) heldFile(key string) string { return filepath.Join(t.recordOf(key), heldName) }

// hold marks a path whose content does not count, nor an edit of it.
func (t *trusted) hold(key string) error {
	err := os.MkdirAll(t.recordOf(key), 0o700)
	if err == nil {
		err = os.WriteFile(t.heldFile(key), nil, 0o600)
	}
	if err != nil {
		return fmt.Errorf("record trusted content: %w", err)
	}
	return nil
}

// waiting is what is in the mark of an environment file. The others are empty.
type waiting struct {
	Key  string `json:"key"`
	Path string `json:"path"`
	Held bool   `json:"held,omitempty"` // as by hold; else the file is judged again
}

// wait marks an environment file so that it is listed.
func (t *trusted) wait(w waiting) error {
	text, err := json.Marshal(w)
	if err == nil {
		err = os.MkdirAll(t.recordOf(w.Key), 0o700)
	}
	if err == nil {
		err = atomicfile.Replace(t.heldFile(w.Key), text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("record trusted content: %w", err)
	}
	return nil
}

// waits returns the mark of an environment file.
func (t *trusted) waits(key string) (w waiting, ok bool) {
	if t.record == "" {
		return waiting{}, false
	}
	return readWaiting(t.heldFile(key))
}

func readWaiting(file string) (w waiting, ok bool) {
	text, err := regularfile.Read(file, maxRecord)
	return w, err == nil && len(text) > 0 && strictjson.Decode(text, &w, strictjson.Limits{}) == nil
}

// waiting lists the marks of environment files.
func (t *trusted) waiting() (list []waiting) {
	if t.record == "" {
		return nil
	}
	folders, _ := os.ReadDir(t.record) // it need not be there
	for _, folder := range folders {
		if w, ok := readWaiting(filepath.Join(t.record, folder.Name(), heldName)); ok {
			list = append(list, w)
		}
	}
	return list
}

// trust records content of a key. The newest ones of a key are kept.
func (t *trusted) trust(key string, content []byte) error {
	file := t.contentFile(key, content)
	text := content
	if digestOnly(key) {
		text = nil
	}
	err := os.MkdirAll(t.recordOf(key), 0o700)
	if err == nil {
		err = atomicfile.Replace(file, text, 0o600)
	}
	if err == nil {
		if err = os.Remove(t.heldFile(key)); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("record trusted content: %w", err)
	}
	if all := t.contents(key); len(all) > keepPerKey {
		for _, old := range all[keepPerKey:] {
			_ = os.Remove(old) // one too many costs a question at most
		}
	}
	return nil
}

// contents lists the recorded contents of a key, the newest first.
func (t *trusted) contents(key string) (files []string) {
	entries, _ := os.ReadDir(t.recordOf(key)) // it need not be there
	times := map[string]time.Time{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.Name() != heldName {
			file := filepath.Join(t.recordOf(key), e.Name())
			files, times[file] = append(files, file), info.ModTime()
		}
	}
	slices.SortFunc(files, func(a, b string) int { return times[b].Compare(times[a]) })
	return files
}

func (t *trusted) write(r record) error {
	text, err := json.Marshal(r)
	if err == nil {
		err = os.MkdirAll(t.record, 0o700)
	}
	if err == nil {
		err = atomicfile.Replace(filepath.Join(t.record, folderFile), text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("record trusted content: %w", err)
	}
	return nil
}

func (t *trusted) read() (r record, err error) {
	text, err := regularfile.Read(filepath.Join(t.record, folderFile), maxRecord)
	if errors.Is(err, fs.ErrNotExist) || t.record == "" {
		return record{}, nil
	}
	if err == nil {
		err = strictjson.Decode(text, &r, strictjson.Limits{})
	}
	if err != nil {
		return record{}, fmt.Errorf("read trusted content: %s: %w", filepath.Join(t.record, folderFile), err)
	}
	return r, nil
}

// revoke removes the record. It reports false if there was none.
func (t *trusted) revoke() (bool, error) {
	if !t.known() {
		return false, nil
	}
	if err := os.Remove(filepath.Join(t.record, folderFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("revoke trust: %w", err)
	}
	if err := os.RemoveAll(t.record); err != nil {
		return false, fmt.Errorf("revoke trust: %w", err)
	}
	return true, nil
}
