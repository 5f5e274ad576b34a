package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// tree is the folder that one call may touch. Close it.
type tree struct {
	*rootfs.Tree
	real     string   // absolute, its links resolved when it was opened
	from     string   // slash path from the workspace, if the grant says it so; else ""
	excluded []string // real paths
}

// open opens the folder that the plugin's word stands for.
func (a *Access) open(call Call, r *request) (*tree, error) {
	f, ok := call.Folders[r.folder]
	hint := fmt.Sprintf("sentinel plugin allow %s --folder %s=PATH", call.Plugin, r.folder)
	if !ok {
		return nil, &abi.Error{Code: abi.Denied, Field: "folder", Permanent: true, Message: fmt.Sprintf("folder %.100q: is not granted", r.folder), Hint: hint}
	}
	changes := operations[r.op].changes
	if changes && !f.Write {
		return nil, &abi.Error{Code: abi.Denied, Field: "folder", Permanent: true, Message: fmt.Sprintf("folder %q: is granted to be read, not to %s", r.folder, r.op), Hint: hint + ":rw"}
	}
	t := &tree{}
	rules := rootfs.Rules{Folder: "list has what is in it", DenyLink: true, Write: t.mayWrite}
	// Looked up for each call: the folders may come later than the host.
	for _, dir := range a.opt.Shut {
		if info, err := os.Stat(dir); err == nil {
			rules.Excluded = append(rules.Excluded, info)
		}
		t.excluded = append(t.excluded, rootfs.EvalLinks(dir))
	}
	var err error
	if filepath.IsAbs(f.Path) {
		t.real = rootfs.EvalLinks(f.Path)
		t.Tree, err = rootfs.Open(f.Path, rules)
	} else {
		err = t.openBelow(call.Workspace, f.Path, rules, f.Write)
	}
	if err != nil {
		return nil, unopened(r.folder, err)
	}
	if err := t.allowed(rules.Excluded); err != nil {
		_ = t.Close() // nothing was read
		return nil, &abi.Error{Code: abi.Denied, Field: "folder", Permanent: true, Message: fmt.Sprintf("folder %q: %v", r.folder, err)}
	}
	return t, nil
}

// openBelow opens a folder of the workspace. What is in a workspace is not the
// operator's: a link in the place of the folder must not lead out of it. One that
// a plugin may write to is made, so that it can look before it writes.
func (t *tree) openBelow(workspace, name string, rules rootfs.Rules, create bool) error {
	if !filepath.IsAbs(workspace) {
		return fmt.Errorf("workspace %q is not absolute", workspace)
	}
	whole, err := rootfs.Open(workspace, rootfs.Rules{Outside: "outside the workspace", Write: steers, Excluded: rules.Excluded})
	if err != nil {
		return err
	}
	defer whole.Close()
	p, err := whole.Resolve(name, create)
	if err != nil {
		return err
	}
	defer p.Close()
	if p.Info == nil && create {
		if err := steers(p.Path); err != nil {
			return err
		}
		if err := p.Dir.Mkdir(p.Name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		// A link that was faster leads no further than Dir, as Lstat will tell.
		if p.Info, err = p.Dir.Lstat(p.Name); err != nil {
			return err
		}
	}
	root, err := whole.OpenFolder(p)
	if err != nil {
		return err
	}
	t.from, t.real = p.Path, filepath.Join(rootfs.EvalLinks(workspace), filepath.FromSlash(p.Path))
	t.Tree = rootfs.New(root, t.real, rules)
	return nil
}

// allowed refuses a folder that lies in one of the host's own.
func (t *tree) allowed(shut []fs.FileInfo) error {
	if command.Secluded(filepath.ToSlash(t.real)) {
		return errOwn
	}
	// Up to the top, since the grant may name a folder deep in one of them.
	for dir := t.real; ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil {
			for _, s := range shut {
				if os.SameFile(s, info) {
					return errOwn
				}
			}
		}
		if filepath.Dir(dir) == dir {
			return nil
		}
	}
}

var errOwn = errors.New("belongs to the host")

// mayWrite is asked about every folder that is made on the way, too. It
// refuses what is not for plugins to change. name is where the file
// really is in the folder.
func (t *tree) mayWrite(name string) error {
	if err := steers(path.Join(t.from, name)); err != nil {
		return err
	}
	// An absolute folder is the operator's own choice, except for these two: what
	// is written there is run.
	full := filepath.Join(t.real, filepath.FromSlash(name))
	for part := range strings.SplitSeq(filepath.ToSlash(full), "/") {
		if t.from == "" && (strings.EqualFold(part, ".git") || strings.EqualFold(part, ".sentinel")) {
			return steering(name)
		}
	}
	// One that does not exist yet cannot be known by what it is.
	for _, dir := range t.excluded {
		if rel, err := filepath.Rel(dir, full); err == nil && filepath.IsLocal(rel) {
			return steering(name)
		}
	}
	return nil
}

// steers refuses to write what tools obey.
func steers(name string) error {
	if command.Steering(name) {
		return steering(name)
	}
	return nil
}

// steering is one error for all of it, with no more of the path than its last
// part: a plugin need not learn where its folder is.
func steering(name string) error {
	return &abi.Error{
		Code: abi.Denied, Field: "path", Permanent: true, Message: fmt.Sprintf("write %q: plugins may not write files that steer tools", path.Base(name)),
		Hint: "a command step or a person can",
	}
}

// unopened is the error for a folder that cannot be used. The paths in err are
// the operator's and stay out of it.
func unopened(word string, err error) error {
	e := &abi.Error{Code: abi.NotFound, Field: "folder", Permanent: true, Message: fmt.Sprintf("folder %q: is not there", word), Hint: "make it, or say with sentinel plugin allow which folder is meant"}
	// Only the kind of the error is told; the guest's word stands for the path.
	switch found := abi.As(err); {
	case found != nil && found.Code == abi.NotFound, errors.Is(err, fs.ErrNotExist):
	case found != nil && found.Code == abi.BadFields:
		e.Message = fmt.Sprintf("folder %q: it is not a folder", word)
	case found != nil:
		e.Code, e.Message, e.Hint = found.Code, fmt.Sprintf("folder %q: it is not one that plugins may use", word), ""
		e.Permanent = found.Permanent
	case errors.Is(err, fs.ErrPermission):
		e.Code, e.Message = abi.Denied, fmt.Sprintf("folder %q: the host's user may not enter it", word)
	default:
		e.Code, e.Message, e.Permanent = abi.Unavailable, fmt.Sprintf("folder %q: cannot be opened", word), false
	}
	return e
}
