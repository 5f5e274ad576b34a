package sentinels

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// An Environment is what a definition adds to the environment of the programs that its
// steps start.
type Environment struct {
	Files     []string                   // in dotenv form, in order; a later one has precedence
	Variables map[string]json.RawMessage // text, number, boolean or {"secret": NAME}; they have precedence over Files
	// Secrets are the secrets that the calling step names itself, see [Step.Secrets].
	Secrets []string
	Shell   Interpreter // reads shell lines whose step names none
	// Origin is where the calling step sends a request, see [Step.Origin].
	Origin string
}

// Environment returns what the definition says about the environment of its programs.
func (d *Definition) Environment() Environment {
	return Environment{Files: d.EnvFiles, Variables: d.Env, Shell: d.Shell}
}

// Plain returns the environment without files and secrets, for programs that a model or an
// agent starts.
func (e Environment) Plain() Environment {
	variables := maps.Clone(e.Variables)
	maps.DeleteFunc(variables, func(_ string, value json.RawMessage) bool { _, secret := reference.SecretIn(value); return secret })
	return Environment{Variables: variables, Shell: e.Shell}
}

// In returns the environment with files that are relative to a folder as absolute paths.
func (e Environment) In(dir string) Environment {
	files := slices.Clone(e.Files)
	for i, path := range files {
		if !filepath.IsAbs(path) {
			files[i] = filepath.Join(dir, path)
		}
	}
	e.Files = files
	return e
}

// Inside returns the definition as it is executed within another one, whose environment outer
// is: with the variables and the interpreter that it does not set itself.
func (d *Definition) Inside(outer Environment) *Definition {
	if len(outer.Variables) == 0 && len(outer.Files) == 0 && len(outer.Shell) == 0 {
		return d
	}
	next := *d
	if len(next.Shell) == 0 {
		next.Shell = outer.Shell
	}
	next.EnvFiles = slices.Concat(outer.Files, d.EnvFiles)
	next.Env = map[string]json.RawMessage{}
	maps.Copy(next.Env, outer.Variables)
	maps.Copy(next.Env, d.Env)
	return &next
}

// Secrets returns the names of the secrets that the step itself names in its "env", in the
// "env" of its "params", or in the "headers" and "auth" of a request, sorted. One that comes from a
// variable is not among them: its value could be a model's.
func (s *Step) Secrets() []string {
	names := map[string]bool{}
	for _, env := range append(s.environments(), s.requestSecrets()...) {
		eachSecret(env.raw, func(_, name string) { names[name] = true })
	}
	return slices.Sorted(maps.Keys(names))
}

// stepEnv is an object of environment variables in a step, with its path in the step.
type stepEnv struct {
	path string
	raw  json.RawMessage
}

func (s *Step) environments() []stepEnv {
	list := []stepEnv{{"env", s.Fields["env"]}}
	if params := s.Fields["params"]; len(params) > 0 && params[0] == '{' {
		strictjson.EachMember(params, func(name, value []byte) bool {
			if strictjson.IsString(name, "env") {
				list = append(list, stepEnv{"params.env", value})
			}
			return true
		})
	}
	return list
}

// eachSecret calls f for every variable of an object that a secret has the value of, if
// the object names the secret itself.
func eachSecret(env json.RawMessage, f func(variable, secret string)) {
	if len(env) == 0 || env[0] != '{' {
		return
	}
	strictjson.EachMember(env, func(variable, value []byte) bool {
		if name, ok := reference.SecretIn(value); ok && !reference.Contains(name) {
			f(strictjson.Unquote(variable), name)
		}
		return true
	})
}

// EachSecret calls f for every secret that the definition or an inline definition in its steps
// names, with the path of the variable.
func (d *Definition) EachSecret(types *TypeSet, f func(path, name string)) {
	d.Walk(types, func(prefix string, d *Definition) {
		for _, variable := range slices.Sorted(maps.Keys(d.Env)) {
			if name, ok := reference.SecretIn(d.Env[variable]); ok {
				f(prefix+"env."+variable, name)
			}
		}
		d.EachStep(func(path string, s *Step) {
			for _, env := range append(s.environments(), s.requestSecrets()...) {
				eachSecret(env.raw, func(variable, name string) { f(prefix+path+"."+env.path+"."+variable, name) })
			}
		})
	})
}

// eachTriggerSecret calls f for every variable of the host, or secret, that a trigger compares
// requests with.
func (d *Definition) eachTriggerSecret(f func(path, name string)) {
	for i, t := range d.Triggers {
		if len(t.Options) == 0 || t.Options[0] != '{' {
			continue
		}
		strictjson.EachMember(t.Options, func(option, value []byte) bool {
			if strictjson.IsString(option, secretOption) && value[0] == '"' {
				f(fmt.Sprintf("trigger[%d].%s", i, secretOption), strictjson.Unquote(value))
			}
			return true
		})
	}
}

// secretOption is the option of triggers that names a variable of the host, or a secret.
const secretOption = "secretEnv"

// AddedSecrets returns the uses of secrets that next has and before, which may be nil, has
// not, as "NAME at PATH" and sorted. A use is a secret under the name of a variable, or in an option
// of a trigger: where the step is does not count, and how many steps have it does.
func AddedSecrets(before, next *Definition, types *TypeSet) (added []string) {
	type use struct{ variable, secret string }
	had := map[use]int{}
	of := func(path, name string) use { return use{path[strings.LastIndexByte(path, '.')+1:], name} }
	if before != nil {
		count := func(path, name string) { had[of(path, name)]++ }
		before.EachSecret(types, count)
		before.eachTriggerSecret(count)
	}
	compare := func(path, name string) {
		if had[of(path, name)]--; had[of(path, name)] < 0 {
			added = append(added, name+" at "+path)
		}
	}
	next.EachSecret(types, compare)
	next.eachTriggerSecret(compare)
	slices.Sort(added)
	return added
}

// secretPattern is what the name of a secret is like; clause A2.4 of sdk/ABI.md.
const secretPattern = "^[A-Z][A-Z0-9_]{0,63}$"

// envPattern is what the name of an environment variable is like.
const envPattern = "^[A-Za-z_][A-Za-z0-9_]*$"

var (
	secretName = lazyregexp.New(secretPattern)
	envName    = lazyregexp.New(envPattern)
)

// ValidVariable reports whether a text can be the name of an environment variable.
func ValidVariable(name string) bool { return envName.MatchString(name) }

// env reads the environment variables of a definition.
func (d *decoder) env(n *node, dst *fileDefinition) {
	if !d.expect(n, '{', "an object of values by name of the variable") {
		return
	}
	if len(n.Members) > 0 {
		dst.Env = make(map[string]json.RawMessage, len(n.Members))
	}
	for _, m := range n.Members {
		if !ValidVariable(m.Name) {
			d.addAt(m.Start, m.Value.Path(), KindValue, "letters, digits and _, not a digit first", fmt.Sprintf("invalid name of an environment variable %q", m.Name))
			continue
		}
		raw := m.Value.Canonical()
		switch name, secret := reference.SecretIn(raw); {
		case secret && !secretName.MatchString(name):
			d.add(m.Value, KindValue, "capitals, digits and _, at most 64", "invalid name of a secret %q", name)
		case secret, m.Value.Kind == '"', m.Value.Kind == '0', m.Value.Kind == 't', m.Value.Kind == 'f':
			dst.Env[m.Name] = raw
		default:
			d.wrongType(m.Value, `a text, a number, a boolean or {"secret": NAME}`)
		}
	}
}

// envSchema is the schema of an object of environment variables.
func envSchema() any {
	secret := map[string]any{"type": "object", "required": []string{"secret"}, "additionalProperties": false,
		"properties": map[string]any{"secret": map[string]any{"type": "string", "pattern": secretPattern}}}
	return map[string]any{"type": "object", "propertyNames": map[string]any{"pattern": envPattern},
		"additionalProperties": map[string]any{"anyOf": []any{map[string]any{"type": []string{"string", "number", "boolean"}}, secret}}}
}

// encodeEnv writes the variables, sorted by name.
func encodeEnv(src *fileDefinition) json.RawMessage { return encodeByName(src.Env) }

// foreignSecret matches the value of a secret as other systems write it.
var foreignSecret = lazyregexp.New(`\$\{\{\s*secrets\.([A-Za-z_]\w*)\s*\}\}|\{\{\s*secrets\.([A-Za-z_]\w*)\s*\}\}|\$\{?secrets?\.([A-Za-z_]\w*)\}?`)

// secretsIn reports these in a value, with the form in which its place takes a secret.
func (c *checker) secretsIn(path string, raw json.RawMessage) (found bool) {
	if len(raw) == 0 {
		return false
	}
	switch raw[0] {
	case '{':
		strictjson.EachMember(raw, func(name, value []byte) bool {
			found = c.secretsIn(path+"."+strictjson.Unquote(name), value) || found
			return true
		})
		return found
	case '[':
		strictjson.EachItem(raw, func(value []byte) bool { found = c.secretsIn(path, value) || found; return true })
		return found
	case '"':
	default:
		return false
	}
	text := strictjson.Unquote(raw)
	own := reference.AssignedInShellLine(text)
	for _, m := range foreignSecret.FindAllStringSubmatch(text, -1) {
		written, name := m[0], strings.ToUpper(m[1]+m[2]+m[3])
		if variable := strings.Trim(strings.Split(written, ".")[0], "${"); c.set[variable] || slices.Contains(own, variable) {
			continue // a variable of the definition, or of the shell line
		}
		found = true
		secret := `{"secret": "` + name + `"}`
		hint := `a secret is given as a variable of the environment: "env": {"` + name + `": ` + secret + `}, and $` + name + ` in a shell line`
		at := strings.Split(path, ".")
		key := at[len(at)-1]
		switch before := at[max(0, len(at)-2)]; {
		case before == "headers" && strings.EqualFold(key, "authorization") && strings.HasPrefix(strings.ToLower(text), "bearer "):
			hint = `write "auth": {"bearer": ` + secret + `} in place of the header`
		case (before == "env" || before == "headers") && strings.TrimSpace(text) == written:
			hint = fmt.Sprintf("write %q: %s", key, secret)
		case key == "bearer" || key == "password" || key == "username":
			hint = fmt.Sprintf("write %q: %s", key, secret)
		case key == "prompt" || key == "system":
			hint = "a model gets no secrets; a step of type shell or http can use one"
		case before == "env":
			hint = `the value of a variable is a secret alone: write "` + name + `": ` + secret + `, and put the text together in the shell line`
		case before == "headers":
			hint = fmt.Sprintf("the value of a header is a secret alone: write %q: %s", key, secret)
		}
		c.Add(Problem{Path: path, Kind: KindUnknown, Hint: hint, Message: written + " is not the value of a secret here"})
	}
	return found
}

// ShellUse is a variable of the environment that a shell line of a definition uses.
type ShellUse struct{ Path, Name string }

// ShellUses returns the variables that shell lines of the definition and of inline definitions
// in its steps use and that neither the definition, its steps nor the lines set. Nothing is
// returned of a line that sources a file.
func (d *Definition) ShellUses(types *TypeSet) (uses []ShellUse) {
	outer := d.Environment()
	d.Walk(types, func(prefix string, inner *Definition) {
		if prefix != "" {
			inner = inner.Inside(outer)
		}
		for _, use := range inner.ownShellUses(types) {
			uses = append(uses, ShellUse{prefix + use.Path, use.Name})
		}
	})
	return uses
}

func (d *Definition) ownShellUses(types *TypeSet) (uses []ShellUse) {
	set := VariablesOf(d, types)
	d.EachStep(func(path string, s *Step) {
		spec, ok := types.Lookup(s.Type)
		if !ok {
			return
		}
		given := maps.Clone(d.Env)
		if given == nil {
			given = map[string]json.RawMessage{}
		}
		for _, env := range s.environments() {
			if len(env.raw) > 0 && env.raw[0] == '{' {
				strictjson.EachMember(env.raw, func(name, value []byte) bool { given[strictjson.Unquote(name)] = value; return true })
			}
		}
		for _, mark := range spec.Marks() {
			at, line := mark.Path, s.Fields[mark.Path]
			if mark.Mark == markParams && reference.Text(s.Fields["command"]) == ShellCommand {
				at += ".command"
				var params struct{ Command json.RawMessage }
				_ = json.Unmarshal(line, &params) // what has no line uses nothing
				line = params.Command
			} else if i, _ := spec.Interpreter(s, d.Shell); mark.Mark != markShell || !i.IsShell() {
				continue
			}
			for _, name := range UsedInShellLine(reference.Text(line)) {
				if _, known := given[name]; !known && !set.Set(name) && !slices.Contains(Reserved, name) {
					uses = append(uses, ShellUse{path + "." + at, name})
				}
			}
		}
	})
	return uses
}

// UsedInShellLine returns the names that a shell line uses and does not set itself, sorted;
// none of a line that sources a file.
func UsedInShellLine(line string) []string {
	if sourcePattern.MatchString(line) {
		return nil
	}
	names := map[string]bool{}
	reference.EachInShellLine(line, func(ref reference.Reference, quoted bool, _ string, _ int) {
		if !quoted {
			names[ref.Name] = true
		}
	})
	for _, m := range foreignPattern.FindAllStringSubmatch(line, -1) {
		if m[2] != "" && m[3] == "" {
			names[m[2]] = true
		}
	}
	for _, name := range reference.AssignedInShellLine(line) {
		delete(names, name)
	}
	return slices.Sorted(maps.Keys(names))
}
