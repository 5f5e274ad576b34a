package plugin

import (
	"context"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
)

type listIn struct{}

type listOut struct {
	Plugins []runtime.PluginInfo `json:"plugins"`
}

func (f family) list(context.Context, *command.Call, listIn) (listOut, error) {
	list := f.opt.Plugins.Plugins()
	if list == nil {
		list = []runtime.PluginInfo{}
	}
	return listOut{list}, nil
}
