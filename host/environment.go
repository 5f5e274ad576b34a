package host

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/shell"
	"github.com/sentinel-runtime/sentinel/host/internal/envfile"
	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
	"github.com/sentinel-runtime/sentinel/host/secret"
	"github.com/sentinel-runtime/sentinel/host/validation"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
)

// definitionVariables returns the variables that the definition of a call's run adds to a
// program. Programs of models and agents get those that are written in the definition alone.
func (h *Host) definitionVariables(call *command.Call) (map[string]string, error) {
	env := call.Environment
	switch {
	case call.Within != nil:
		if plain := env.Plain(); len(env.Files) > 0 || len(plain.Variables) < len(env.Variables) {
			return nil, boundedError("the definition has envFiles or secrets")
		}
	case call.Held():
		env = env.Plain()
	}
	variables := map[string]string{}
	if len(env.Files) > 0 {
		if err := h.entrusted(call, "envFiles"); err != nil {
			return nil, err
		}
	}
	for _, path := range env.Files {
		if h.confines() && h.writtenConfined(call.Workspace, path) {
			return nil, &abi.Error{Code: abi.Denied, Field: "envFiles", Permanent: true, Message: fmt.Sprintf("environment file %q is in the workspace, where commands that shell.confine confines can write it", path),
				Hint: fmt.Sprintf("keep it in %s, which they cannot write, or outside of the workspace", DirName)}
		}
		file, err := envfile.Read(call.Workspace, path, func(text []byte) error {
			return h.trust.Content().CheckEnvironment(call.Workspace, path, text)
		})
		if err != nil {
			return nil, err
		}
		if h.writtenByModels(call.Workspace, path) {
			return nil, &abi.Error{Code: abi.Denied, Field: "envFiles", Permanent: true, Message: fmt.Sprintf("environment file %q: models and agents may write it, and with its variables choose what programs execute", path),
				Hint: fmt.Sprintf("name it .env, or .env.local, .env.production and so on, or keep it in %s or outside of the workspace", DirName)}
		}
		var entries []string
		for name, value := range file {
			entries = append(entries, name+"="+value)
		}
		_ = h.redactor.Register(secret.InEnvironment(entries)...) // too short ones are words
		maps.Copy(variables, file)
	}
	for name, value := range env.Variables {
		named, ok := reference.SecretIn(value)
		if !ok {
			variables[name] = reference.Text(value)
			continue
		}
		err := h.entrusted(call, fmt.Sprintf("the secret %q", named))
		if err == nil {
			variables[name], err = h.secretOf(call.Sentinel, named)
		}
		if err != nil {
			return nil, err
		}
	}
	return variables, nil
}

// entrusted returns an error if an agent started the run of a person's definition so that its programs
// read what the agent may have written: in a workspace that it chose, or where agents are confined.
func (h *Host) entrusted(call *command.Call, what string) error {
	why := "which may have other files than those that its author knows"
	switch {
	case !call.ForAgent():
		return nil
	case h.confines():
		why = "whose files confined commands of agents can write"
	case filepath.Clean(call.Workspace) == filepath.Clean(h.opt.Workspace):
		return nil
	}
	return &abi.Error{Code: abi.Denied, Permanent: true, Field: "env", Message: fmt.Sprintf("the definition has %s, and %s started it in the workspace %s, %s", what, call.Who(), call.Workspace, why),
		Hint: "have a person or a trigger start it, in the workspace that is served"}
}

// writtenByModels reports whether commands on files write a file for models and agents, by its name
// or by what it leads to.
func (h *Host) writtenByModels(workspace, path string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(workspace, path)
	}
	return slices.ContainsFunc(slices.Compact([]string{workspace, h.opt.Workspace}), func(root string) bool {
		rules := h.fileRules().In(root)
		in := func(real func(string) string) bool {
			rel, err := filepath.Rel(real(root), real(path))
			return err == nil && filepath.IsLocal(rel) && rules.MayWrite(filepath.ToSlash(rel)) == nil
		}
		return in(filepath.Clean) || in(rootfs.EvalLinks)
	})
}

// writtenConfined reports whether a command that is confined to a workspace can write a file or
// replace it by a link: one in the workspace, but for the folder that the host serves.
func (h *Host) writtenConfined(workspace, path string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(workspace, path)
	}
	in := func(path string, real func(string) string) bool {
		path = real(path)
		return !isWithin(path, real(h.dir)) && (isWithin(path, real(workspace)) || isWithin(path, real(h.opt.Workspace)))
	}
	return in(path, filepath.Clean) || in(path, rootfs.EvalLinks)
}

// stepSecret returns the value of a secret for the program that a step starts. The step has to
// name the secret itself: a name in a value of a variable could be a model's.
func (h *Host) stepSecret(call *command.Call, name string) (string, error) {
	deny := func(format string, args ...any) error {
		return &abi.Error{Code: abi.Denied, Field: "env", Permanent: true, Message: fmt.Sprintf(format, args...),
			Hint: `a person writes it into the "env", "headers" or "auth" of a step: {"secret": "NAME"}`}
	}
	switch {
	case call.Within != nil:
		return "", boundedError("its step names the secret %q", name)
	case call.By != command.ByStep:
		return "", deny("secret %q: only steps of definitions use secrets, and the call is by a %s", name, call.By)
	case !slices.Contains(call.Environment.Secrets, name):
		return "", deny("secret %q: the step does not name it itself", name)
	}
	if err := h.entrusted(call, fmt.Sprintf("the secret %q", name)); err != nil {
		return "", err
	}
	return h.secretOf(call.Sentinel, name)
}

// boundedError is the error of a definition that comes from a model or an agent and would get what is
// for definitions of persons.
func boundedError(format string, args ...any) error {
	return &abi.Error{
		Code: abi.Denied, Field: "env", Permanent: true, Message: "environment: " + fmt.Sprintf(format, args...) + ", and the definition of the run comes from a model or an agent",
		Hint: "`sentinel inbox` shows it to a person, who may accept it with `sentinel accept`",
	}
}

// secretOf returns the value of a secret that a sentinel may use.
func (h *Host) secretOf(id sentinels.ID, name string) (string, error) {
	if err := h.allowed.Check(name, ownerID(id)); err != nil {
		return "", err
	}
	return h.secrets.Value(name)
}

// ownerID returns the id of the sentinel whose file has the definition of a run: that of an inline
// definition is in the file of its parent.
func ownerID(id sentinels.ID) string {
	owner, _, _ := strings.Cut(string(id), "@")
	return owner
}

// secretProblem returns why a sentinel cannot use a secret here, nil if it can.
func (h *Host) secretProblem(id sentinels.ID, name string) *sentinels.Problem {
	_, err := h.secretOf(id, name)
	e := abi.As(err)
	if e == nil {
		return nil
	}
	return &sentinels.Problem{Kind: sentinels.KindAbsent, Message: e.Message, Hint: e.Hint, Denied: e.Code == abi.Denied}
}

// withheld returns the variables that shell lines of a definition use, that are set on the host
// and that its steps do not get.
func (h *Host) withheld(d *sentinels.Definition, names []string) []validation.Withheld {
	for _, path := range d.EnvFiles {
		// A definition that is validated may be an agent's, which learns nothing of other folders.
		at := filepath.Join(h.opt.Workspace, path)
		if !filepath.IsLocal(path) || !isWithin(rootfs.EvalLinks(at), rootfs.EvalLinks(h.opt.Workspace)) {
			return nil // what it has is not known
		}
		file, err := envfile.Read(h.opt.Workspace, path, nil)
		if err != nil {
			return nil
		}
		names = slices.DeleteFunc(names, func(name string) bool { _, given := file[name]; return given })
	}
	var out []validation.Withheld
	for _, name := range h.shells.Withheld(names) {
		out = append(out, validation.Withheld{Name: name, Hint: shell.WithheldHint(name)})
	}
	return out
}
