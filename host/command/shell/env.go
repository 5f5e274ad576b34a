package shell

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/internal/pathtext"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// inherited are the variables of the host that every program gets. All others
// stay behind: keys and tokens live in the environment.
var inherited = []string{
	"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "TMPDIR",
	"GOPATH", "GOROOT", "GOCACHE", "GOMODCACHE", "GOTOOLCHAIN", "CARGO_HOME", "RUSTUP_HOME", "JAVA_HOME", "NVM_DIR", "VIRTUAL_ENV",
	"SystemRoot", "ComSpec", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "ProgramFiles", "SystemDrive",
}

// secretName matches the names of variables that are never passed on, not even
// when the operator lists them: a step that needs one gets it by reference.
var secretName = lazyregexp.New(`(?i)(API_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|PRIVATE_KEY|ACCESS_KEY|_KEY$|_PAT$|^AWS_|_AUTH$)`)

var envName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// maxEnvString is what Linux allows one variable or argument to have, in bytes.
const maxEnvString = 128<<10 - 1

// checkPassed refuses names that must not be inherited.
func checkPassed(names []string) error {
	for _, n := range names {
		if !envName.MatchString(n) || secretName.MatchString(n) {
			return fmt.Errorf("pass variable %q: not a name, or that of a secret", n)
		}
	}
	return nil
}

// environment builds what a program gets: the allowed part of the host's own,
// then the call's, the step's, and ours. Values of the call and the step are paths with
// their own bytes where they were written by [pathtext.Encode].
func environment(passed []string, call *command.Call, step map[string]string, cookie, id string) ([]string, error) {
	vars := map[string]string{"TERM": "dumb", "CI": "true", "PWD": call.Workspace}
	for _, name := range slices.Concat(inherited, passed) {
		if v, ok := os.LookupEnv(name); ok {
			vars[name] = v
		}
	}
	vars["PATH"] = absolutePath(vars["PATH"])
	for _, more := range []map[string]string{call.Env, step} {
		for name, value := range more {
			if !envName.MatchString(name) || strings.ContainsRune(value, 0) {
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
	list := make([]string, 0, len(vars))
	for name, value := range vars {
		list = append(list, name+"="+value)
	}
	sort.Strings(list)
	return list, nil
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
