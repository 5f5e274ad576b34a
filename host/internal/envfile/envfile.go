// Package envfile reads files of environment variables in dotenv form: NAME=value lines,
// comments, quotes, values of several lines in double quotes, and ${NAME} of a line before in
// values that are not in single quotes.
package envfile

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sort"
	"strings"

	"github.com/joho/godotenv"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// maxFile is the size of a file in bytes, and maxLines that of one whose mistakes have a line.
const (
	maxFile  = 1 << 20
	maxLines = 1000
)

// steering are variables by which a program executes other code than its own. A file may be
// written by those who do not write the definition, as a .env file of a project is. The content of such a
// file is what the user has to trust; this list names the usual ones, and cannot be whole.
var steering = lazyregexp.New(`^(` +
	`LD_.*|DYLD_.*|GCONV_PATH|PATH|HOME|TMPDIR|XDG_.*|SHELL|IFS|CDPATH|` + // any program
	`ENV|BASH_.*|SHELLOPTS|BASHOPTS|PS4|PROMPT_COMMAND|ZDOTDIR|` +
	`GIT_.*|SSH_ASKPASS|EDITOR|VISUAL|PAGER|BROWSER|LESSOPEN|LESSCLOSE|TAR_OPTIONS|OPENSSL_CONF|` +
	`GOFLAGS|GOENV|GOROOT|GOPATH|GOTOOLCHAIN|GOPROXY|GOSUMDB|GONOSUMDB|GOINSECURE|CC|CXX|AR|MAKEFLAGS|GNUMAKEFLAGS|MAKEFILES|RUSTC.*|RUSTDOC.*|RUSTFLAGS|RUSTUP_.*|CARGO_.*|` +
	`PYTHON.*|PERL5.*|RUBY.*|BUNDLE_.*|GEM_.*|NODE_OPTIONS|NODE_PATH|(?i:npm_config_.*)|YARN_.*|PHPRC|PHP_INI_SCAN_DIR|LUA_INIT.*|R_(?:HOME|LIBS|PROFILE|ENVIRON).*|JULIA_.*|` +
	`JAVA_TOOL_OPTIONS|JDK_JAVA_OPTIONS|_JAVA_OPTIONS|MAVEN_OPTS|GRADLE_OPTS|CLASSPATH|DOTNET_STARTUP_HOOKS|` +
	`KUBECONFIG|AWS_CONFIG_FILE|DOCKER_(?:HOST|CONFIG|CONTEXT|CERT_PATH|TLS.*)` +
	`)$`)

// Read returns the variables of a file, which is relative to dir. Its errors name the file, and
// nothing that it contains: values are often secrets. check, if it is not nil, may refuse the text.
func Read(dir, path string, check func(text []byte) error) (map[string]string, error) {
	full := path
	if !filepath.IsAbs(path) {
		full = filepath.Join(dir, path)
	}
	bad := func(code abi.Code, why, hint string) error {
		return &abi.Error{Code: code, Field: "envFiles", Permanent: true, Message: fmt.Sprintf("environment file %q: %s", full, why), Hint: hint}
	}
	f, _, err := regularfile.Open(full)
	if err != nil {
		return nil, bad(abi.NotFound, cause(err), "a path in envFiles is absolute or relative to the workspace of the run")
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, bad(abi.Unavailable, cause(err), "")
	}
	if len(text) > maxFile {
		return nil, bad(abi.Limit, fmt.Sprintf("has more than %d MiB", maxFile>>20), "")
	}
	if check != nil {
		if err := check(text); err != nil {
			return nil, err
		}
	}
	variables, err := parse(string(text))
	for name := range variables {
		if steering.MatchString(name) {
			return nil, bad(abi.Denied, "it sets "+name+", which decides what programs execute", "write "+name+` in "env" of the definition or of a step`)
		}
	}
	if err != nil {
		return nil, bad(abi.BadFields, "it is not in dotenv form"+from(string(text)), "write NAME=value lines, and put values with spaces or line ends in double quotes")
	}
	return variables, nil
}

// parse is [godotenv.Parse], which a mistake can make panic.
func parse(text string) (variables map[string]string, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("invalid text")
		}
	}()
	variables, err = godotenv.Parse(strings.NewReader(keepDollars(text)))
	for name, value := range variables {
		if !sentinels.ValidVariable(name) {
			return nil, errors.New("invalid name")
		}
		variables[name] = strings.ReplaceAll(value, kept, "$")
	}
	return variables, err
}

// kept stands for a $ that the library must not read. No text has this code point, which is not a character.
const kept = "\U0010fffe"

var assignmentOrDollar = lazyregexp.New(`(?m)^[ \t]*(?:export[ \t]+)?(\w+)[ \t]*[=:]|\\\$|\$\{([A-Z0-9_]+)\}|\$`)

// keepDollars hides each $ from the library but those of ${NAME} where a line before sets NAME. The library
// removes every other $ with what follows, so that a password would lose characters.
func keepDollars(text string) string {
	set := map[string]bool{}
	var out strings.Builder
	done := 0
	for _, m := range assignmentOrDollar.FindAllStringSubmatchIndex(text, -1) {
		switch {
		case m[2] >= 0:
			set[text[m[2]:m[3]]] = true
		case text[m[0]] == '\\', m[4] >= 0 && set[text[m[4]:m[5]]]:
		default:
			out.WriteString(text[done:m[0]] + kept)
			done = m[0] + 1
		}
	}
	return out.String() + text[done:]
}

// from says behind which line the mistake is, "" if that is not known: the library's own error
// quotes the rest of the file.
func from(text string) string {
	lines := strings.SplitAfter(text, "\n")
	if len(lines) > maxLines {
		return ""
	}
	first := sort.Search(len(lines), func(n int) bool {
		_, err := parse(strings.Join(lines[:n+1], ""))
		return err != nil
	})
	return fmt.Sprintf(", from line %d on", first+1)
}

// cause returns the innermost cause of an error of the file system.
func cause(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}
