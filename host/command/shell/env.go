package shell

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/internal/pathtext"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// inherited are the variables of the host that every program gets.
var inherited = []string{
	"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "TMPDIR",
	"GOPATH", "GOROOT", "GOCACHE", "GOMODCACHE", "GOTOOLCHAIN", "CARGO_HOME", "RUSTUP_HOME", "JAVA_HOME", "NVM_DIR", "VIRTUAL_ENV",
	"SystemRoot", "ComSpec", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "ProgramFiles", "SystemDrive",
	// Proxies, and certificates of authorities as the usual tools read them.
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH",
	"AWS_CA_BUNDLE", "PIP_CERT", "CARGO_HTTP_CAINFO", "DENO_CERT", "NIX_SSL_CERT_FILE",
}

// agentSocket is inherited by programs that a person's definition starts: who can use it signs
// in elsewhere as the user.
const agentSocket = "SSH_AUTH_SOCK"

// Inherited returns the variables of the host that programs of steps get, in the order of the
// list, without those that [Options.Pass] adds.
func Inherited() []string { return append(slices.Clone(inherited), agentSocket) }

// secretName matches the names of variables that hold secrets, and of those that programs of models and
// agents do not get although [Options.Pass] names them.
var secretName = lazyregexp.New(`(?i)(API_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|PRIVATE_KEY|ACCESS_KEY|_KEY$|_PAT$|^AWS_|_AUTH$)`)

// ownPrefix begins the variables of this program, which no pattern matches: they hold its secrets, and say
// which run a process belongs to.
const ownPrefix = "SENTINEL_"

// maxEnvString is what Linux allows one variable or argument to have, in bytes.
const maxEnvString = 128<<10 - 1

// passes reports whether programs of the call inherit a variable of the host.
func (m *Manager) passes(call *command.Call, name string) bool {
	if slices.Contains(inherited, name) {
		return true
	}
	held := call.Bounded()
	if name == agentSocket {
		return !held
	}
	if held && secretName.MatchString(name) {
		return false
	}
	return slices.ContainsFunc(m.opt.Pass, func(pattern string) bool {
		if pattern == name || !strings.Contains(pattern, "*") {
			return pattern == name
		}
		_, ours := defaults[name]
		return !ours && !strings.HasPrefix(name, ownPrefix) && matches(pattern, name)
	})
}

// matches reports whether a pattern matches a name: * is any number of characters.
func matches(pattern, name string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, first)
	for from := 0; ok && from <= len(name); from++ {
		if matches(rest, name[from:]) {
			return true
		}
	}
	return false
}

// defaults are the variables that a program has unless something else sets them.
var defaults = map[string]string{"TERM": "dumb", "CI": "true"}

// environment builds what a program gets; each replaces the ones before it: what the host passes on, what
// the definition says, the variables of the shell line, what the step says, and ours. Values of the call
// and the step are paths with their own bytes where they were written by [pathtext.Encode].
func (m *Manager) environment(call *command.Call, step map[string]command.EnvValue, cookie, id string) ([]string, error) {
	vars := maps.Clone(defaults)
	vars["PWD"] = call.Workspace
	for _, entry := range m.opt.Environ() {
		if name, value, _ := strings.Cut(entry, "="); m.passes(call, name) {
			vars[name] = value
		}
	}
	vars["PATH"] = absolutePath(vars["PATH"])
	var definition map[string]string
	if m.opt.Definition != nil {
		var err error
		if definition, err = m.opt.Definition(call); err != nil {
			return nil, err
		}
	}
	own, err := m.resolveSecrets(call, step)
	if err != nil {
		return nil, err
	}
	for _, more := range []map[string]string{definition, call.Env, own} {
		for name, value := range more {
			if !sentinels.ValidVariable(name) || strings.ContainsRune(value, 0) {
				return nil, &abi.Error{Code: abi.BadFields, Field: "env", Permanent: true, Message: fmt.Sprintf("execute: variable %q: not a name, or a value with a zero byte", name)}
			}
			if len(name)+1+len(value) > maxEnvString {
				return nil, &abi.Error{
					Code: abi.Limit, Permanent: true, Message: fmt.Sprintf("execute: variable %q: %d bytes, more than the %d the system takes", name, len(value), maxEnvString),
					Hint: "give it as stdin, or write it to a file first",
				}
			}
			vars[name] = pathtext.Decode(value)
		}
	}
	if outer := os.Getenv("SENTINEL_COOKIE"); outer != "" {
		cookie = outer + ":" + cookie // this host runs in an execution itself
	}
	for name, value := range map[string]string{
		"SENTINEL_RUN": string(call.Run), "SENTINEL_STEP": call.Path, "SENTINEL_WORKSPACE": call.Workspace, "SENTINEL_IDEMPOTENCY_KEY": call.Key,
		"SENTINEL_EXECUTION": id, "SENTINEL_COOKIE": cookie,
	} {
		if value != "" {
			vars[name] = value
		}
	}
	withGitSetting(vars, "safe.bareRepository", "explicit")
	list := make([]string, 0, len(vars))
	for name, value := range vars {
		list = append(list, name+"="+value)
	}
	sort.Strings(list)
	return list, nil
}

// withGitSetting adds a setting for each git to variables that may have some, unless they have it.
// A folder of the workspace in which files look like a repository, without the name .git, is one for git
// otherwise, and its settings name programs: who writes files there need not be who starts git.
func withGitSetting(vars map[string]string, key, value string) {
	count, n := vars["GIT_CONFIG_COUNT"], 0
	if count != "" {
		var err error
		if n, err = strconv.Atoi(count); err != nil || n < 0 {
			return // git refuses it and does nothing
		}
	}
	for i := range n {
		if strings.EqualFold(vars[fmt.Sprintf("GIT_CONFIG_KEY_%d", i)], key) {
			return
		}
	}
	vars[fmt.Sprintf("GIT_CONFIG_KEY_%d", n)], vars[fmt.Sprintf("GIT_CONFIG_VALUE_%d", n)] = key, value
	vars["GIT_CONFIG_COUNT"] = strconv.Itoa(n + 1)
}

// resolveSecrets returns the variables of a step with the values of the secrets that it names.
func (m *Manager) resolveSecrets(call *command.Call, step map[string]command.EnvValue) (map[string]string, error) {
	own := make(map[string]string, len(step))
	for name, v := range step {
		own[name] = v.Text
		if v.Secret == "" {
			continue
		}
		if m.opt.Secret == nil {
			return nil, &abi.Error{Code: abi.NotFound, Field: "env", Permanent: true, Message: fmt.Sprintf("secret %q: this host has no secrets", v.Secret)}
		}
		var err error
		if own[name], err = m.opt.Secret(call, v.Secret); err != nil {
			return nil, err
		}
	}
	return own, nil
}

// Withheld returns those of names that are set on the host, and that programs of steps do not get.
func (m *Manager) Withheld(names []string) []string { return m.withheld(&command.Call{}, names) }

func (m *Manager) withheld(call *command.Call, names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool {
		_, ours := defaults[name]
		set := slices.ContainsFunc(m.opt.Environ(), func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
		// These are variables of the shell itself, and ours.
		return !set || ours || m.passes(call, name) || strings.HasPrefix(name, ownPrefix) || slices.Contains([]string{"PWD", "OLDPWD", "SHLVL", "IFS", "_"}, name)
	})
}

// WithheldHint is the mend for variables that programs of steps do not get.
func WithheldHint(name string) string {
	if secretName.MatchString(name) {
		return fmt.Sprintf("write \"env\": {%q: {\"secret\": %q}}, or name it in the setting shell.env; see sentinel help environment", name, strings.ToUpper(name))
	}
	return `name it in the setting shell.env, or set it with "env"; see sentinel help environment`
}

// withheldHint names the variables of a shell line that failed which are set on the host and that it did not
// get, "" if there are none.
func (m *Manager) withheldHint(call *command.Call, line string, step map[string]command.EnvValue) string {
	names := slices.DeleteFunc(sentinels.UsedInShellLine(line), func(name string) bool {
		_, given := step[name]
		_, definition := call.Environment.Variables[name]
		_, ofLine := call.Env[name]
		return given || definition || ofLine
	})
	if names = m.withheld(call, names); len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("$%s is set here, but steps do not get it: %s", names[0], WithheldHint(names[0]))
}

// absolutePath drops the relative and empty entries of a search path, through
// which a file of the workspace could pose as a program.
func absolutePath(path string) string {
	if path == "" {
		path = "/usr/local/bin:/usr/bin:/bin"
	}
	kept := slices.DeleteFunc(filepath.SplitList(path), func(dir string) bool { return !filepath.IsAbs(dir) })
	return strings.Join(kept, string(os.PathListSeparator))
}

// resolve finds the program that name means: a path as it is (below dir if
// relative), else the first executable of that name on the search path.
func resolve(name, dir string, env []string) (string, error) {
	missing := &abi.Error{Code: abi.NotFound, Permanent: true, Message: fmt.Sprintf("execute %q: no such program", name)}
	if strings.ContainsRune(name, '/') || filepath.IsAbs(name) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		if info, err := os.Stat(name); err != nil || info.IsDir() {
			return "", missing
		}
		return name, nil
	}
	var path string
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			path = v
		}
	}
	for _, folder := range filepath.SplitList(path) {
		if !filepath.IsAbs(folder) || name == "" {
			continue
		}
		for _, suffix := range executableSuffixes {
			full := filepath.Join(folder, name+suffix)
			if info, err := os.Stat(full); err == nil && info.Mode().IsRegular() && executable(info) {
				return full, nil
			}
		}
	}
	missing.Hint = "it is not on PATH: " + path
	return "", missing
}
