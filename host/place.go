package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A place is a workspace, reached from a folder of the operator or of the host.
type place struct {
	base string // without links: the served workspace or a cache of the host, empty if it is in neither
	rest string // below base, without links
	real string // the workspace without links
}

// placeOf returns where a workspace is. Below the served workspace, and below the caches of the host,
// no part of it may be a link: an earlier command may have left it there, and it could lead anywhere.
func (h *Host) placeOf(workspace string) (place, error) {
	workspace = filepath.Clean(workspace)
	real, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		return place{}, err
	}
	var bases []string
	for _, path := range append([]string{h.opt.Workspace}, h.hostFiles().Caches...) {
		if base, err := filepath.EvalSymlinks(path); err == nil && !slices.Contains(bases, base) {
			bases = append(bases, base)
		}
	}
	// Where the path enters one of them first.
	found := place{real: real}
	for at := workspace; ; at = filepath.Dir(at) {
		base, err := filepath.EvalSymlinks(at)
		if err == nil && slices.Contains(bases, base) {
			if found.rest, err = filepath.Rel(at, workspace); err != nil {
				return place{}, err
			}
			found.base = base
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	if found.base != "" && filepath.Join(found.base, found.rest) != real {
		return place{}, &abi.Error{Code: abi.Denied, Permanent: true, Field: "workspace", Message: fmt.Sprintf("workspace %q: a link below %q leads to %q", workspace, found.base, real),
			Hint: "name the folder itself as the workspace"}
	}
	return found, nil
}

// ownFolders are the files and folders of this host in which no confined command and no caller that is
// held to rules has its workspace, without those that the served workspace is in.
func (h *Host) ownFolders() (list []string) {
	files := h.hostFiles()
	served := rootfs.EvalLinks(h.opt.Workspace)
	for _, path := range slices.Concat(files.Closed, files.Fixed, []string{h.dir}) {
		if path = rootfs.EvalLinks(path); !isWithin(served, path) {
			list = append(list, path)
		}
	}
	return list
}

// isWithin reports whether a path is a folder or below it. Both are clean.
func isWithin(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// checkPlace decides about the workspace of a call of a model, an agent or a run with a bound. It is
// asked at every call: a confined command can replace folders while a run waits. See [command.Placed].
func (h *Host) checkPlace(call *command.Call) (base string, err error) {
	return h.checkPlaceOf(call.Workspace, call.Within != nil || call.By == command.ByAgent)
}

// baseOf is checkPlace for what the engine does for a run itself, which has no base if it has no bound.
func (h *Host) baseOf(workspace string, within []string) (base string, err error) {
	if within == nil {
		return "", nil
	}
	return h.checkPlaceOf(workspace, true)
}

// checkPlaceOf is checkPlace for a workspace. With bound, the workspace was not chosen by a person alone.
func (h *Host) checkPlaceOf(workspace string, bound bool) (base string, err error) {
	refuse := func(why string) error {
		return &abi.Error{Code: abi.Denied, Permanent: true, Field: "workspace", Message: fmt.Sprintf("workspace %q: %s", workspace, why),
			Hint: "models and agents work in the served workspace, or in a folder below it that is neither hidden nor of the host"}
	}
	at, err := h.placeOf(workspace)
	if errors.Is(err, os.ErrNotExist) {
		return "", &abi.Error{Code: abi.NotFound, Permanent: true, Field: "workspace", Message: fmt.Sprintf("workspace %q: no such folder", workspace)}
	} else if err != nil {
		return "", err
	}
	if own := h.ownFolders(); slices.ContainsFunc(own, func(dir string) bool { return isWithin(at.real, dir) }) {
		return "", refuse("it is of the host")
	}
	served := rootfs.EvalLinks(h.opt.Workspace)
	for part := range strings.SplitSeq(filepath.ToSlash(at.rest), "/") {
		switch {
		case strings.EqualFold(part, ".git"):
			return "", refuse("it is in a repository's folder")
		case bound && at.base == served && part != "." && strings.HasPrefix(part, "."):
			return "", refuse(fmt.Sprintf("%q is hidden", part))
		}
	}
	return at.base, nil
}
