package backup

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
)

// Format is the format of the archives that this program writes. It reads all formats up
// to this one.
const Format = 1

// The names of the first and the last entry.
const (
	InfoName = "backup.json"
	listName = "files.json"
)

// Info describes an archive.
type Info struct {
	Format      int       `json:"format"`
	Version     string    `json:"version"`     // of the program that wrote it
	StoreFormat int       `json:"storeFormat"` // of the store in it
	Taken       time.Time `json:"taken"`
	Project     string    `json:"project"` // path of the folder that has the .sentinel folder
	Secrets     bool      `json:"secrets"` // the encrypted secrets are in it
}

// The trees of an archive.
const (
	rootSentinel  = "sentinel/"  // the .sentinel folder
	rootContinuum = "continuum/" // the folder .continuum/sentinels of the project
	rootConfig    = "config/"    // config.json, secrets.age
	rootShell     = rootSentinel + "state/shell/"
)

// Sources are what an archive is made of.
type Sources struct {
	Info    Info
	Dir     string // the .sentinel folder
	State   string // the state folder
	Store   string // a store snapshot
	Project string // whose .continuum folder counts
	Config  string // the configuration file, "" for none
	Secrets string // the encrypted secrets, "" to leave them out
}

// maxSmall is the largest file that is read whole: outputs, logs and definitions. Blobs
// and plugins are streamed, because they do not change.
const maxSmall = 64 << 20

// parts are the files and folders of a state folder that are in an archive. All others are made again
// (caches, indexes, tokens, the socket), or bound to this machine (checkpoints, snapshots).
var parts = []string{"blobs", "shell", "logs", "audit", "files.json", "format.json"}

// folders are those of a .sentinel folder that are in an archive.
var folders = []string{"sentinels", "recipes", "plugins"}

// Names of the user's files in an archive.
const (
	configName  = "config.json"
	secretsName = "secrets.age"
)

// fileName matches the name of a file up to its extension. Many programs obey files in the folder where they are
// started, such as .envrc and .hg/hgrc: names that begin with a dot, or have no known extension.
const fileName = `[^./\\\x00][^/\\\x00]*`

// entries matches the names that an archive may have between its first entry and its last. No other file is written
// to one, and none is restored.
var entries = lazyregexp.New(`^(?:` +
	rootSentinel + `(?:` +
	`state/(?:(?:store\.db|files\.json|format\.json)|blobs/[0-9a-f]{2}/[0-9a-f]+|` +
	`shell/` + fileName + `\.(?:json|out|log)|logs/` + fileName + `\.jsonl|audit/audit\.jsonl(?:\.[0-9T.]+)?)|` +
	`(?:sentinels|recipes)/` + fileName + `\.jsonc?|` +
	`plugins/(?:grants\.json|plugins\.lock\.json|` + fileName + `\.wasm))|` +
	rootContinuum + fileName + `\.jsonc?|` +
	rootConfig + `(?:config\.json|secrets\.age))$`)

// forGit reports whether a file says how git treats others, which was in archives of earlier versions. A host writes
// its own, which leaves out the state.
func forGit(name string) bool {
	return strings.EqualFold(name, ".gitignore") || strings.EqualFold(name, ".gitattributes")
}

// isExecution reports whether an entry is the record of an execution.
func isExecution(name string) bool {
	return strings.HasPrefix(name, rootShell) && strings.EqualFold(path.Ext(name), ".json")
}

// Write writes an archive. The caller keeps blobs from being removed meanwhile.
func Write(ctx context.Context, to io.Writer, s Sources) error {
	z, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
	if err != nil {
		return err
	}
	w := &writer{ctx: ctx, tar: tar.NewWriter(z), digests: map[string]string{}}
	info := s.Info
	info.Format = Format
	if err := w.value(InfoName, info); err != nil {
		return err
	}
	if err := w.all(s); err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	if err := w.value(listName, w.digests); err != nil {
		return err
	}
	return errors.Join(w.tar.Close(), z.Close())
}

type writer struct {
	ctx     context.Context
	tar     *tar.Writer
	digests map[string]string // by name, hexadecimal
}

func (w *writer) all(s Sources) error {
	if err := w.stream(rootSentinel+"state/store.db", s.Store); err != nil {
		return err
	}
	for _, part := range parts {
		if err := w.tree(rootSentinel+"state/"+part, filepath.Join(s.State, part), part == "blobs"); err != nil {
			return err
		}
	}
	for _, part := range folders {
		if err := w.tree(rootSentinel+part, filepath.Join(s.Dir, part), false); err != nil {
			return err
		}
	}
	if err := w.tree(strings.TrimSuffix(rootContinuum, "/"), filepath.Join(s.Project, ".continuum", "sentinels"), false); err != nil {
		return err
	}
	for name, file := range map[string]string{configName: s.Config, secretsName: s.Secrets} {
		if file == "" {
			continue
		}
		if err := w.tree(rootConfig+name, file, false); err != nil {
			return err
		}
	}
	return nil
}

// tree adds the regular files at or below a path that an archive may have. What is removed meanwhile is left out,
// unless the files are fixed, as blobs are: then it is an error. Only blobs are in further folders.
func (w *writer) tree(name, root string, fixed bool) error {
	return filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && (file == root || !fixed) {
			return nil
		}
		if err == nil && d.IsDir() && file != root && !fixed {
			return filepath.SkipDir
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		entry := path.Join(name, filepath.ToSlash(rel))
		if !entries.MatchString(entry) {
			return nil
		}
		if fixed {
			return w.stream(entry, file)
		}
		text, err := regularfile.Read(file, maxSmall)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if isExecution(entry) {
			text = withoutProcess(text)
		}
		return w.bytes(entry, text)
	})
}

// withoutProcess removes the process from the record of an execution, and its state is lost if it had
// not ended: the host that opens the restored state must not end processes of another machine's numbers.
// Names are compared without case, because a reader may. Of invalid records nothing is left.
func withoutProcess(record []byte) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(record, &members) != nil || members == nil {
		return []byte("{}")
	}
	state := json.RawMessage(`"lost"`)
	if string(members["state"]) == `"ended"` {
		state = members["state"]
	}
	maps.DeleteFunc(members, func(name string, _ json.RawMessage) bool {
		return slices.ContainsFunc([]string{"state", "bootId", "pid", "startTime", "cookie"}, func(own string) bool { return strings.EqualFold(name, own) })
	})
	members["state"] = state
	text, err := json.Marshal(members)
	if err != nil {
		return []byte("{}")
	}
	return text
}

func (w *writer) value(name string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return w.bytes(name, text)
}

func (w *writer) bytes(name string, text []byte) error {
	return w.entry(name, int64(len(text)), strings.NewReader(string(text)))
}

// stream adds a file that does not change.
func (w *writer) stream(name, file string) error {
	f, err := regularfile.OpenFile(file, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return w.entry(name, info.Size(), f)
}

func (w *writer) entry(name string, size int64, from io.Reader) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o600, Size: size, Format: tar.FormatPAX}
	if err := w.tar.WriteHeader(h); err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w.tar, sum), io.LimitReader(from, size))
	if err == nil && n != size {
		err = fmt.Errorf("%s: %d of %d bytes", name, n, size)
	}
	w.digests[name] = hex.EncodeToString(sum.Sum(nil))
	return err
}
