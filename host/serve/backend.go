package serve

import (
	"context"
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/host/command"
)

// commands is the command registry for the API.
type commands Server

// List returns every command, by name.
func (c *commands) List() []command.Command { return c.host.Commands().List() }

// Version changes with the list.
func (c *commands) Version() string { return c.host.Commands().Version() }

// Lookup finds a command by its name.
func (c *commands) Lookup(name string) (command.Command, bool) {
	return c.host.Commands().Lookup(name)
}

// Call executes a command, with the workspace, and the store if it needs it.
func (c *commands) Call(ctx context.Context, call *command.Call) (json.RawMessage, error) {
	return c.host.CallAs(ctx, call)
}
