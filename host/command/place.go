package command

import (
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
)

// Placed decides whether a caller that is held to rules may work in the workspace of its call. It
// returns a folder from which the workspace is reached without links, empty if there is none.
type Placed func(call *Call) (base string, err error)

// Place has placed decide about the workspace of each call of a model, an agent or a run with a
// bound. It is called before the registry is used.
func (r *Registry) Place(placed Placed) { r.placed = placed }

// Base returns the folder from which the workspace of the call is reached without links, empty if that
// does not matter.
func (c *Call) Base() string { return c.base }

// RealWorkspace returns the workspace of the call without links. Where [Registry.Place] has decided about it,
// none below the folder that was returned is followed: one that is there was made since.
func (c *Call) RealWorkspace() (string, error) {
	if c.base == "" {
		return filepath.EvalSymlinks(c.Workspace)
	}
	rest, err := filepath.Rel(c.base, filepath.Clean(c.Workspace))
	if err != nil || !filepath.IsLocal(rest) { // a link of the operator leads into the folder
		return filepath.EvalSymlinks(c.Workspace)
	}
	return filepath.Join(rootfs.EvalLinks(c.base), rest), nil
}

// OpenWorkspace opens the workspace of the call. Where [Registry.Place] has decided about it, it is
// opened without following links below the folder that was returned. The caller closes the tree.
func (c *Call) OpenWorkspace(rules rootfs.Rules) (*rootfs.Tree, error) {
	return OpenPlaced(c.base, c.Workspace, rules)
}

// OpenPlaced opens a workspace without following links below base, see [Placed].
func OpenPlaced(base, workspace string, rules rootfs.Rules) (*rootfs.Tree, error) {
	if base == "" {
		return rootfs.Open(workspace, rules)
	}
	rest, err := filepath.Rel(base, filepath.Clean(workspace))
	if err != nil {
		return nil, err
	}
	root, err := rootfs.OpenBelow(base, rest)
	if err != nil {
		return nil, err
	}
	return rootfs.New(root, workspace, rules), nil
}
