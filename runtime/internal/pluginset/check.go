package pluginset

import (
	"fmt"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// CheckTotals returns why there cannot be so many plugins that are not trusted, with
// so many bytes in their files together. It returns nil if there can.
func (s *Set) CheckTotals(count int, size int64) error {
	const hint = "remove the files of plugins that no definition uses"
	switch {
	case count > s.opt.Plugins:
		return &abi.Error{Code: abi.Limit, Permanent: true, Hint: hint, Message: fmt.Sprintf("there are %d plugins, the limit is %d", count, s.opt.Plugins)}
	case size > s.opt.PluginBytes:
		return &abi.Error{Code: abi.Limit, Permanent: true, Hint: hint, Message: fmt.Sprintf("the files of all plugins have %d bytes together, the limit is %d", size, s.opt.PluginBytes)}
	}
	return nil
}

// checkModules holds the modules that are to be live to the limits.
func (s *Set) checkModules(modules []*Module) error {
	count, size := 0, int64(0)
	for _, m := range modules {
		if !m.trusted {
			count++
			size += int64(len(m.Bytes()))
		}
	}
	return s.CheckTotals(count, size)
}

// checkManifest reports names in permissions that the code which compares them with a
// request could not read: they would fail every such request.
func (s *Set) checkManifest(m wasm.Manifest) error {
	if err := s.checkRoles(m); err != nil {
		return err
	}
	if s.opt.CheckPermission == nil {
		return nil
	}
	for i, permission := range m.Permissions {
		for j, name := range permission.Names {
			if err := s.opt.CheckPermission(abi.Use(permission.Use), name); err != nil {
				e := abi.Error{Code: abi.Plugin, Permanent: true, Message: fmt.Sprintf("describe: permissions[%d].names[%d] %.100q: %v", i, j, name, err)}
				if cause := abi.As(err); cause != nil {
					e.Message, e.Hint = fmt.Sprintf("describe: permissions[%d].names[%d]: %s", i, j, cause.Message), cause.Hint
				}
				return &e
			}
		}
	}
	return nil
}

// checkRoles reports roles that the program cannot use.
func (s *Set) checkRoles(m wasm.Manifest) error {
	if s.opt.CheckRole == nil {
		return nil
	}
	for i, t := range m.Steps {
		if t.Provides == nil {
			continue
		}
		if err := s.opt.CheckRole(providedBy(m, t)); err != nil {
			e := *failure.From(err, abi.Plugin)
			e.Permanent, e.Message = true, fmt.Sprintf("describe: steps[%d].provides: %s", i, e.Message)
			return &e
		}
	}
	return nil
}

// checkName refuses a plugin that is not trusted with the name of one that is part of the
// program, or of one of its step types: in lists and questions it would be taken for
// that.
func (s *Set) checkName(info *plugin.Info) error {
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
