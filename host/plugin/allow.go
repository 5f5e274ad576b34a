package plugin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/plugin/grant"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

type allowIn struct {
	Name    string                   `json:"name" jsonschema:"the plugin, or its file"`
	Digest  string                   `json:"digest,omitempty" jsonschema:"beginning of the digest that was looked at; default the newest version"`
	Only    []use                    `json:"only,omitempty" jsonschema:"parts of what it asks for; a use that is named here is allowed these names alone"`
	Deny    []string                 `json:"deny,omitempty" jsonschema:"uses that it is not allowed"`
	Secrets map[string][]string      `json:"secrets,omitempty" jsonschema:"by name of a secret the hosts that may be sent it; default the hosts that it is allowed"`
	Folders map[string]plugin.Folder `json:"folders,omitempty" jsonschema:"by the plugin's word for it the folder meant, absolute or relative to the run's workspace"`
	Reuse   bool                     `json:"reuse,omitempty" jsonschema:"let instances of a stateless plugin serve several steps"`
	Private bool                     `json:"private,omitempty" jsonschema:"let its requests go to addresses that are not public"`
	Memory  int64                    `json:"memoryMb,omitempty" minimum:"1" maximum:"1024" jsonschema:"most memory of a guest of a step; default: limits.guestMemory"`
	Timeout int64                    `json:"timeoutMs,omitempty" minimum:"1" jsonschema:"most time of a step"`
	Pin     bool                     `json:"pin,omitempty" jsonschema:"hold the grant to these very bytes"`
	Follow  bool                     `json:"follow,omitempty" jsonschema:"let a changed file that asks for no more keep the grant, also one that reaches far"`
	Dry     bool                     `json:"dryRun,omitempty" jsonschema:"say what would be allowed, and change nothing"`
	By      string                   `json:"by,omitempty" jsonschema:"who decides; default user"`
}

// use is a part of what a plugin asks for.
type use struct {
	Use   string   `json:"use"`
	Names []string `json:"names,omitempty"`
}

type allowOut struct {
	Plugin      Listed              `json:"plugin"`
	Digest      string              `json:"digest"` // that was decided about
	Permissions []plugin.Permission `json:"permissions,omitempty"`
	Grant       *plugin.Grant       `json:"grant,omitempty"`
	Pin         bool                `json:"pin,omitempty"`
	Far         []string            `json:"far,omitempty"`   // what of the grant reaches far, in words
	Notes       []string            `json:"notes,omitempty"` // what the operator should know
}

// by is who decides, for the file.
func by(name string) string {
	if name == "" {
		return "user"
	}
	return name
}

// allow puts into the file what a plugin may do, and has the engine ask again.
// When the process ends in between, the next one finds the file.
func (f family) allow(ctx context.Context, call *command.Call, in allowIn) (allowOut, error) {
	if in.Pin && in.Follow {
		return allowOut{}, wrong("pin", "pin and follow are two answers to one question", "")
	}
	v, err := f.find(in.Name, in.Digest)
	if err != nil {
		return allowOut{}, err
	}
	// A grant cannot repair an invalid file, and an entry for it would be
	// good for the next file of that name.
	if v.info.State == plugin.Refused && v.info.Next == nil {
		return allowOut{}, &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("plugin %q cannot be loaded, whatever it is allowed: %s", v.info.Name, v.info.Problem)}
	}
	g, notes, err := f.grant(v, in)
	if err != nil {
		return allowOut{}, err
	}
	// Who allows much allows it to these bytes: see package grant, RATIONALE.md.
	far := f.far(g)
	pin := in.Pin || len(far) > 0 && !in.Follow
	out := allowOut{Digest: v.digest, Permissions: v.permissions, Grant: &g, Pin: pin, Far: far, Notes: notes}
	if in.Dry { // what the user sees before they confirm
		out.Plugin = f.listed(v.info)
		return out, nil
	}
	e := grant.Entry{Name: v.info.Name, Digest: v.digest, Version: v.number, File: v.info.Source, By: by(in.By), Pin: pin, Grant: g}
	if err := f.opt.Grants.Set(ctx, e); err != nil {
		return allowOut{}, err
	}
	done, err := f.settled(ctx, e)
	out.Plugin = done.Plugin
	return out, err
}

// settled has the engine ask again, and returns what has become of the plugin.
// Its error means that the decision is in the file and not yet in effect: a server
// that follows the file tries again, and so does the next start.
func (f family) settled(ctx context.Context, e grant.Entry) (allowOut, error) {
	if err := f.opt.Regrant(ctx); err != nil {
		return allowOut{}, err
	}
	out := allowOut{Digest: e.Digest, Plugin: Listed{Info: plugin.Info{Name: e.Name, Version: e.Version, Source: e.File, Digest: e.Digest}}}
	for _, p := range f.opt.Plugins.Plugins() {
		if p.Name == e.Name && (e.File == "" || p.Source == e.File) {
			out.Plugin.Info = p
		}
	}
	out.Plugin = f.listed(out.Plugin.Info)
	return out, nil
}

// grant returns the grant of the parameters, out of what the version asks for.
func (f family) grant(v version, in allowIn) (g plugin.Grant, notes []string, err error) {
	if g.Allow, err = chosen(v.permissions, in.Only, in.Deny); err != nil {
		return g, nil, err
	}
	http, _ := g.Names(abi.UseHTTP)
	switch {
	case in.Reuse && !v.info.Stateless:
		return g, nil, wrong("reuse", fmt.Sprintf("plugin %q does not say that it is stateless", v.info.Name), "leave --reuse out")
	case in.Private && len(http) == 0:
		return g, nil, wrong("private", "it is allowed no host to send requests to", "leave --private out")
	}
	g.Reuse, g.Private, g.Memory = in.Reuse, in.Private, in.Memory<<20
	g.TimeoutMs = in.Timeout
	if g.Secrets, err = secrets(&g, in.Secrets, http); err != nil {
		return g, nil, err
	}
	if err = f.checkNames(g); err != nil {
		return g, nil, err
	}
	if g.Folders, notes, err = f.folders(&g, in.Folders); err != nil {
		return g, nil, err
	}
	if g.TimeoutMs > 0 {
		notes = append(notes, fmt.Sprintf("its steps end after %s, whatever a definition says", time.Duration(g.TimeoutMs)*time.Millisecond))
	}
	return g, notes, nil
}

// checkNames reads the names of a grant as the code will that compares them with a
// request: one that it cannot read would fail every call.
func (f family) checkNames(g plugin.Grant) error {
	if f.opt.CheckPermission == nil {
		return nil
	}
	check := func(field string, use abi.Use, name string) error {
		err := f.opt.CheckPermission(use, name)
		if err == nil {
			return nil
		}
		message, hint := err.Error(), ""
		if e := abi.As(err); e != nil {
			message, hint = e.Message, e.Hint
		}
		return wrong(field, message, hint)
	}
	for _, a := range g.Allow {
		for _, name := range a.Names {
			if err := check("only", abi.Use(a.Use), name); err != nil {
				return err
			}
		}
	}
	for _, secret := range slices.Sorted(maps.Keys(g.Secrets)) {
		for _, host := range g.Secrets[secret] {
			if err := check("secrets", abi.UseHTTP, strings.TrimPrefix(host, "http://")); err != nil {
				return err
			}
		}
	}
	return nil
}

// wrong is the error of a parameter.
func wrong(field, message, hint string) error {
	return &abi.Error{Code: abi.BadFields, Field: field, Permanent: true, Message: "plugin/allow: " + message, Hint: hint}
}
