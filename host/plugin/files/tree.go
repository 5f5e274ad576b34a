package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A tree is the folder that one call is confined to. The caller closes it.
type tree struct {
	*rootfs.Tree
	real     string   // absolute, with the links resolved when it was opened
	from     string   // slash path relative to the workspace; "" if the grant has an absolute path
	excluded []string // real paths
}

// open opens the folder that the grant has for the request's folder name.
func (a *Access) open(call Call, r *request) (*tree, error) {
	f, ok := call.Folders[r.folder]
	hint := fmt.Sprintf("sentinel plugin allow %s --folder %s=PATH", call.Plugin, r.folder)
	if !ok {
		return nil, &abi.Error{Code: abi.Denied, Field: "folder", Permanent: true, Message: fmt.Sprintf("folder %.100q: not granted", r.folder), Hint: hint}
	}
	changes := operations[r.op].changes
	if changes && !f.Write {
		return nil, &abi.Error{Code: abi.Denied, Field: "folder", Permanent: true, Message: fmt.Sprintf("folder %q: granted for reading only, not for %s", r.folder, r.op), Hint: hint + ":rw"}
	}
	t := &tree{}
	rules := rootfs.Rules{Folder: "use list to read a folder", DenyLink: true, Write: t.mayWrite}
	// For each call, because the folders may be created after the host's start.
	own := slices.Concat(a.opt.Host.Closed, a.opt.Host.Fixed)
	if filepath.IsAbs(f.Path) { // else the workspace may be in a cache
		own = append(own, a.opt.Host.Caches...)
	}
	for _, dir := range own {
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
		err = t.openBelow(call, f.Path, rules, f.Write)
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

// openBelow opens a folder of the workspace. The content of a workspace is not
// trusted: if the folder is a link, it must not lead out of the workspace. With
// create, a missing folder is made, so that a plugin can list it before it writes.
func (t *tree) openBelow(call Call, name string, rules rootfs.Rules, create bool) error {
	workspace := call.Workspace
	if !filepath.IsAbs(workspace) {
		return fmt.Errorf("workspace %q is not absolute", workspace)
	}
	parent, err := command.OpenPlaced(call.Base, workspace, rootfs.Rules{Outside: "outside the workspace", Write: steers, Excluded: rules.Excluded})
	if err != nil {
		return err
	}
	defer parent.Close()
	p, err := parent.Resolve(name, create)
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
		// If a link was created first, Lstat shows it and OpenFolder returns an error.
		if p.Info, err = p.Dir.Lstat(p.Name); err != nil {
			return err
		}
	}
	root, err := parent.OpenFolder(p)
	if err != nil {
		return err
	}
	t.from, t.real = p.Path, filepath.Join(rootfs.EvalLinks(workspace), filepath.FromSlash(p.Path))
	t.Tree = rootfs.New(root, t.real, rules)
	return nil
}

// allowed returns an error for a folder in one of the host's own folders.
func (t *tree) allowed(excluded []fs.FileInfo) error {
	if command.Secluded(filepath.ToSlash(t.real)) {
		return errOwn
	}
	// Check every parent, because the grant may name a folder deep in one of them.
	for dir := t.real; ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil {
			for _, s := range excluded {
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

var errOwn = errors.New("it belongs to the host")

// mayWrite is the rule [rootfs.Rules.Write]: it returns an error for files that
// plugins must not write, and applies to new parent folders too. name is relative
// to the folder, with links resolved.
func (t *tree) mayWrite(name string) error {
	if err := steers(path.Join(t.from, name)); err != nil {
		return err
	}
	if command.MakesRepository(t.real, name) {
		return steering(name)
	}
	// In an absolute folder, which the operator chose, only these two are denied,
	// because programs execute files in them.
	full := filepath.Join(t.real, filepath.FromSlash(name))
	for part := range strings.SplitSeq(filepath.ToSlash(full), "/") {
		if t.from == "" && (strings.EqualFold(part, ".git") || strings.EqualFold(part, ".sentinel")) {
			return steering(name)
		}
	}
	// A folder that does not exist yet can be recognized only by its path.
	for _, dir := range t.excluded {
		if rel, err := filepath.Rel(dir, full); err == nil && filepath.IsLocal(rel) {
			return steering(name)
		}
	}
	return nil
}

// steers returns an error for files that steer tools, see [command.Steering].
func steers(name string) error {
	if command.Steering(name) {
		return steering(name)
	}
	return nil
}

// steering is the error for files that plugins must not write. It has only the last
// part of the path, so that a plugin does not learn where its folder is.
func steering(name string) error {
	return &abi.Error{
		Code: abi.Denied, Field: "path", Permanent: true, Message: fmt.Sprintf("write %q: plugins may not write files that steer tools", path.Base(name)),
		Hint: "use a command step, or write the file yourself",
	}
}

// unopened is the error for a folder that cannot be opened. It does not contain the
// paths in err, which the plugin must not learn.
func unopened(word string, err error) error {
	e := &abi.Error{Code: abi.NotFound, Field: "folder", Permanent: true, Message: fmt.Sprintf("folder %q: not found", word), Hint: "create it, or grant another folder with sentinel plugin allow"}
	// The error has only the kind of the cause and the guest's name for the folder.
	switch found := abi.As(err); {
	case found != nil && found.Code == abi.NotFound, errors.Is(err, fs.ErrNotExist):
	case found != nil && found.Code == abi.BadFields:
		e.Message = fmt.Sprintf("folder %q: it is not a folder", word)
	case found != nil:
		e.Code, e.Message, e.Hint = found.Code, fmt.Sprintf("folder %q: plugins may not use this folder", word), ""
		e.Permanent = found.Permanent
	case errors.Is(err, fs.ErrPermission):
		e.Code, e.Message = abi.Denied, fmt.Sprintf("folder %q: the host's user has no permission to enter it", word)
	default:
		e.Code, e.Message, e.Permanent = abi.Unavailable, fmt.Sprintf("folder %q: cannot be opened", word), false
	}
	return e
}
