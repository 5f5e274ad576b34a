package pluginset

import (
	"github.com/sentinel-runtime/sentinel/runtime/external"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// DeniedCommand returns an error if the plugin may not call a command.
func (m *Module) DeniedCommand(info external.CommandInfo) *abi.Error {
	if m.Trusted() {
		return nil
	}
	grant, _ := m.Allowed()
	names, _ := grant.Names(abi.UseCommand)
	asked, _ := m.Requested(abi.UseCommand)
	name := m.Manifest().Name
	switch {
	case !info.NamedBy(asked):
		e := m.Refusal("plugin %q does not ask for the command %q", name, info.Name)
		e.Hint = "its author has to add the command to what it asks for"
		switch {
		case info.ByName:
			e.Hint += "; no pattern matches it, it must be named"
		case info.Private:
			e.Hint += "; it is not in * nor in the pattern of a family above its own"
		}
		return e
	case !info.NamedBy(names):
		return m.Refusal("plugin %q is not allowed the command %q", name, info.Name)
	}
	return nil
}
