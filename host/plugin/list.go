package plugin

import (
	"context"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/plugin/grant"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
)

type listIn struct{}

type listOut struct {
	Plugins []Listed `json:"plugins"`
}

// A Listed is a plugin with the operator's decision about it.
type Listed struct {
	plugin.Info
	Approval *Approval `json:"approval,omitempty"` // nil without a decision
}

// An Approval is the operator's decision about a plugin, without the grant itself.
type Approval struct {
	Digest  string         `json:"digest,omitempty"`
	By      string         `json:"by,omitempty"`
	At      time.Time      `json:"at"`
	Denied  bool           `json:"denied,omitempty"`
	Pin     bool           `json:"pin,omitempty"`
	Carried *grant.Carried `json:"carried,omitempty"`
	Seal    grant.Seal     `json:"seal"`
}

func (f family) list(context.Context, *command.Call, listIn) (listOut, error) {
	out := listOut{Plugins: []Listed{}}
	for _, p := range f.opt.Plugins.Plugins() {
		out.Plugins = append(out.Plugins, f.listed(p))
	}
	return out, nil
}

// listed adds the decision about a plugin. An error of reading is not reported here: it
// is the reason why the plugin waits.
func (f family) listed(p plugin.Info) Listed {
	l := Listed{Info: p}
	if p.Trusted {
		return l
	}
	if e, seal, err := f.opt.Grants.Entry(p.Name); err == nil && seal != grant.None {
		l.Approval = &Approval{Digest: e.Digest, By: e.By, At: e.At, Denied: e.Denied, Pin: e.Pin, Carried: e.Carried, Seal: seal}
	}
	return l
}
