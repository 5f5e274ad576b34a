package runtime

import (
	"fmt"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// CheckPluginTotals returns why a runtime cannot have so many plugins that are not
// trusted, with so many bytes in their files together: they pass [Limits.Plugins] or
// [Limits.PluginBytes]. It returns nil if it can.
func (rt *Runtime) CheckPluginTotals(count int, size int64) error {
	const hint = "remove the files of plugins that no definition uses"
	switch most := rt.limits; {
	case count > most.Plugins:
		return &abi.Error{Code: abi.Limit, Permanent: true, Hint: hint, Message: fmt.Sprintf("there are %d plugins, the limit is %d", count, most.Plugins)}
	case size > most.PluginBytes:
		return &abi.Error{Code: abi.Limit, Permanent: true, Hint: hint, Message: fmt.Sprintf("the files of all plugins have %d bytes together, the limit is %d", size, most.PluginBytes)}
	}
	return nil
}

// checkTotals holds the modules that are to be live to the limits.
func (s *pluginSet) checkTotals(modules []*heldModule) error {
	count, size := 0, int64(0)
	for _, m := range modules {
		if !m.trusted {
			count++
			size += int64(len(m.Bytes()))
		}
	}
	return s.rt.CheckPluginTotals(count, size)
}

// checkManifest reports names in asks that the code which compares them with a
// request could not read: they would fail every such request.
func (s *pluginSet) checkManifest(m wasm.Manifest) error {
	if s.rt.opt.CheckAsk == nil {
		return nil
	}
	for i, ask := range m.Asks {
		for j, name := range ask.Names {
			if err := s.rt.opt.CheckAsk(abi.Use(ask.Use), name); err != nil {
				e := abi.Error{Code: abi.Plugin, Permanent: true, Message: fmt.Sprintf("describe: asks[%d].names[%d] %.100q: %v", i, j, name, err)}
				if cause := abi.As(err); cause != nil {
					e.Message, e.Hint = fmt.Sprintf("describe: asks[%d].names[%d]: %s", i, j, cause.Message), cause.Hint
				}
				return &e
			}
		}
	}
	return nil
}

// checkName refuses a plugin of others with the name of one that is part of the
// program, or of one of its step types: in lists and questions it would be taken for
// that.
func (s *pluginSet) checkName(info *PluginInfo) error {
	if info.Trusted {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := info.Name == builtinName
	for _, other := range s.infos {
		if other.Trusted && (other.Name == info.Name || slices.Contains(other.Types, sentinels.StepType(info.Name))) {
			taken = true
		}
	}
	if !taken {
		return nil
	}
	return &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("the plugin is named %q, like a part of this program", info.Name),
		Hint: "give the plugin another name in its manifest"}
}

// builtinName is the name that programs give the plugin with their own step types.
const builtinName = "builtin"
