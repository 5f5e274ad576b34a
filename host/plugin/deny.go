package plugin

import (
	"context"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/plugin/grant"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

type denyIn struct {
	Name string `json:"name" jsonschema:"the plugin, or its file"`
	By   string `json:"by,omitempty" jsonschema:"who decides; default user"`
}

// deny denies all versions of a plugin. What its active steps request from the
// host from now on is denied.
func (f family) deny(ctx context.Context, call *command.Call, in denyIn) (allowOut, error) {
	v, err := f.find(in.Name, "")
	e := grant.Entry{Name: in.Name, By: by(in.By), Denied: true}
	switch {
	case abi.CodeOf(err) == abi.NotFound:
		// Its file may be missing for now, which must not delay the decision.
		before, seal, failed := f.opt.Grants.Entry(in.Name)
		if failed != nil || seal == grant.None {
			return allowOut{}, err
		}
		e.Digest, e.Version, e.File = before.Digest, before.Version, before.File
	case abi.CodeOf(err) == abi.Conflict: // several files: all of them
	case err != nil:
		return allowOut{}, err
	default:
		e.Name, e.Digest, e.Version, e.File = v.info.Name, v.digest, v.number, v.info.Source
	}
	if err := f.opt.Grants.Set(ctx, e); err != nil {
		return allowOut{}, err
	}
	return f.settled(ctx, e)
}
