package plugin

import (
	"context"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/plugin/grant"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Plugins is what the commands need of the engine.
type Plugins interface {
	Plugins() []plugin.Info
}

// Grants stores the operator's decisions about plugins. [*grant.Store] is one.
type Grants interface {
	Entry(name string) (grant.Entry, grant.Seal, error)
	Set(ctx context.Context, e grant.Entry) error
	File() string
}

var _ Grants = (*grant.Store)(nil)

// Options configure the commands.
type Options struct {
	Plugins Plugins // required
	Grants  Grants  // required
	// Regrant has the engine ask again what plugins may do. Required.
	Regrant func(ctx context.Context) error
	// Lookup finds a command, to recognize those that reach far. Default: none is known.
	Lookup func(name string) (command.Command, bool)
	// CheckPermission returns why a name of a use could never be compared with a request, such
	// as a host that is none. Default: every name is taken.
	CheckPermission func(use abi.Use, name string) error
	// Keep are folders that no plugin may be given: the host's own. Default none.
	Keep []string
}

type family struct{ opt Options }

// Commands returns the family plugin/*.
func Commands(opt Options) []command.Command {
	f := family{opt}
	decide := command.Options{Effect: command.Decides, Idempotent: true}
	return []command.Command{
		command.New("plugin/list", "List the plugins, live, waiting or refused, with their step types, what they ask for and what they are allowed.",
			command.Options{Effect: command.Reads, Idempotent: true, Private: true}, f.list),
		command.New("plugin/allow", "Allow a plugin what it asks for, or a part of it.", decide, f.allow),
		command.New("plugin/deny", "Take back what a plugin is allowed, and refuse what it asks for.", decide, f.deny),
	}
}
