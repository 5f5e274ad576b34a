package plugin

import (
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
)

// Plugins is what the commands need of the engine.
type Plugins interface {
	Plugins() []runtime.PluginInfo
}

// Options say what the commands show.
type Options struct {
	Plugins Plugins // required
}

type family struct{ opt Options }

// Commands returns the family plugin/*.
func Commands(opt Options) []command.Command {
	f := family{opt}
	return []command.Command{
		command.New("plugin/list", "List the plugins, live or not, with the step types they provide.",
			command.Options{ReadOnly: true, Idempotent: true, Private: true}, f.list),
	}
}
