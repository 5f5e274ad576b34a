package foldersync

import (
	"cmp"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Kind is the kind of a watched file.
type Kind string

// The kinds of files.
const (
	KindSentinel Kind = "sentinel"
	KindRecipe   Kind = "recipe"
	KindPlugin   Kind = "plugin"
)

// State is the state of a watched file.
type State string

// The states of a file.
const (
	Live      State = "live"      // its content is in use; problems are those that the stored definition had before
	Invalid   State = "invalid"   // it has problems; its last valid content stays live, if there was one
	Compiling State = "compiling" // a plugin that is being compiled; the version before it stays live, if there was one
	Waiting   State = "waiting"   // a plugin that the operator has to allow; the version before it stays live, if there was one
	Missing   State = "missing"   // deleted, within the grace period
	Context   State = "context"   // a recipe of context sources alone: there is nothing to run
	Gone      State = "gone"      // deleted; reported once and not listed any more
)

// A FileInfo describes a watched file to clients.
type FileInfo struct {
	File     string             `json:"file"` // absolute
	Kind     Kind               `json:"kind"`
	State    State              `json:"state"`
	Sentinel sentinels.ID       `json:"sentinel,omitempty"`
	Revision int                `json:"revision,omitempty"` // that the file was last the same as
	Plugin   string             `json:"plugin,omitempty"`
	Digest   string             `json:"digest,omitempty"` // of a plugin's content that was last read
	Problems sentinels.Problems `json:"problems,omitempty"`
}

// file is one watched file. Fields are guarded by the lock of [Syncer].
type file struct {
	root   *root
	rel    string // below the root, with slashes
	origin string // absolute: what the store calls it
	shown  string // in problems: relative to the workspace if it is in there
	kind   Kind

	state    State
	digest   string    // of the content that was last read, "" if it could not be
	changed  time.Time // as it was noticed since the start; zero before
	missing  time.Time
	problems sentinels.Problems

	// Of a definition. The claim is the id of the last valid content, which
	// the file keeps while it is invalid.
	claim sentinels.ID
	held  bool // the stored definition with the claim is from this file
	lost  bool // the claim is that of another file before it, so nothing of this one was ever live
	mark  mark // what was last the same in file and store

	// failing: it could not be stored or loaded for no fault of its own, which was
	// logged, and is tried again.
	failing bool
	// untrusted: the last reading was refused because others wrote it or could have.
	untrusted bool

	plugin     string   // the plugin's own name
	size       int64    // of a plugin's content that was last read, bytes
	unreadable string   // why a plugin could not be read the last time
	reported   reported // what was reported of it last
}

func (r *Syncer) newFile(root *root, rel string) *file {
	f := &file{root: root, rel: rel, origin: filepath.Join(root.dir, filepath.FromSlash(rel)), kind: KindSentinel, state: Invalid}
	switch {
	case strings.HasSuffix(rel, ".wasm"):
		f.kind = KindPlugin
	case path.Dir(rel) == recipesDir && root.rank == 0:
		f.kind = KindRecipe
	}
	f.shown = f.origin
	for _, base := range []string{r.opt.Workspace, filepath.Dir(r.opt.Dir)} {
		if base == "" {
			continue
		}
		if short, err := filepath.Rel(base, f.origin); err == nil && filepath.IsLocal(short) {
			f.shown = short
			break
		}
	}
	f.mark = r.marks.get(f.origin)
	return f
}

// untrusted returns the problem of a file that the policy refuses with err, nil without one.
func (r *Syncer) untrusted(f *file, err error) *sentinels.Problem {
	if err == nil {
		return nil
	}
	hint := ""
	if e := abi.As(err); e != nil {
		hint = e.Hint
	}
	p := f.problem("file", err.Error(), hint)
	return &p
}

// source is what the engine calls a plugin's file.
func (f *file) source() string { return path.Base(f.rel) }

func (f *file) info() FileInfo {
	i := FileInfo{
		File: f.origin, Kind: f.kind, State: f.state, Sentinel: f.claim, Revision: f.mark.Revision, Plugin: f.plugin, Problems: f.problems,
	}
	if f.kind == KindPlugin {
		i.Digest = f.digest
	}
	return i
}

// invalid sets the problems of a file.
func (f *file) invalid(problems ...sentinels.Problem) {
	f.state, f.problems = Invalid, problems
}

// problem makes a problem of the file as a whole.
func (f *file) problem(kind sentinels.Kind, message, hint string) sentinels.Problem {
	return sentinels.Problem{File: f.shown, Kind: kind, Message: message, Hint: hint}
}

// compareFiles is stable over restarts and does not depend on what came first. It is the order that decides between files with the same id: those
// of the host's own folder first, sentinels before recipes, then by name.
func compareFiles(a, b *file) int {
	rank := func(f *file) int {
		if f.kind == KindRecipe {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(a.root.rank, b.root.rank), cmp.Compare(rank(a), rank(b)), cmp.Compare(a.rel, b.rel))
}
