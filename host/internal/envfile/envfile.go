// Package envfile reads files of environment variables in dotenv form: NAME=value lines,
// comments, quotes, values of several lines in double quotes, and ${NAME} of a line before in
// values that are not in single quotes.
package envfile

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// maxFile is the size of a file in bytes, and maxValues that of all its values with what ${NAME} stands for.
const (
	maxFile   = 1 << 20
	maxValues = 1 << 20
)

// steering are variables by which a program executes other code than its own. A file may be
// written by those who do not write the definition, as a .env file of a project is. The content of such a
// file is what the user has to trust; this list names the usual ones, and cannot be whole.
var steering = lazyregexp.New(`^(` +
	`LD_.*|DYLD_.*|GCONV_PATH|PATH|HOME|TMPDIR|XDG_.*|SHELL|IFS|CDPATH|` + // any program
	`ENV|BASH_.*|SHELLOPTS|BASHOPTS|PS4|PROMPT_COMMAND|ZDOTDIR|` +
	`GIT_.*|SSH_ASKPASS|EDITOR|VISUAL|PAGER|BROWSER|LESSOPEN|LESSCLOSE|TAR_OPTIONS|OPENSSL_CONF|SVN_SSH|CVS_RSH|RSYNC_RSH|HG|HGRCPATH|HGEDITOR|HGMERGE|VIMINIT|EXINIT|ANSIBLE_.*|` +
	`GOFLAGS|GOENV|GOROOT|GOPATH|GOTOOLCHAIN|GOPROXY|GOSUMDB|GONOSUMDB|GOINSECURE|GOCACHEPROG|GOAUTH|CC|CXX|AR|(?:CGO_)?(?:C|CXX|CPP|F|LD)FLAGS|PKG_CONFIG.*|MAKEFLAGS|GNUMAKEFLAGS|MAKEFILES|RUSTC.*|RUSTDOC.*|RUSTFLAGS|RUSTUP_.*|CARGO_.*|` +
	`PYTHON.*|PIP_.*|UV_(?:CONFIG_FILE|DEFAULT_INDEX|.*INDEX.*|FIND_LINKS|PYTHON.*|TOOL_.*)|COREPACK_.*|ERL_.*|ELIXIR_ERL_OPTIONS|PERL5.*|RUBY.*|BUNDLE_.*|GEM_.*|NODE_OPTIONS|NODE_PATH|(?i:npm_config_.*)|YARN_.*|PHPRC|PHP_INI_SCAN_DIR|LUA_INIT.*|R_(?:HOME|LIBS|PROFILE|ENVIRON).*|JULIA_.*|` +
	`JAVA_HOME|JAVA_TOOL_OPTIONS|JDK_JAVA_OPTIONS|_JAVA_OPTIONS|MAVEN_OPTS|GRADLE_OPTS|CLASSPATH|DOTNET_STARTUP_HOOKS|` +
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
	variables, m := parse(string(text))
	if m != nil {
		return nil, bad(m.code, fmt.Sprintf("%s, from line %d on", m.why, m.line), m.hint)
	}
	return variables, nil
}

// A mistake is why a file is not read. It quotes nothing of the file but the name of a variable.
type mistake struct {
	code      abi.Code
	why, hint string
	line      int // of the statement
}

func notDotenv() *mistake {
	return &mistake{code: abi.BadFields, why: "it is not in dotenv form", hint: "write NAME=value lines, and put values with spaces or line ends in double quotes"}
}

// parse returns the variables of a text up to the first mistake.
func parse(text string) (map[string]string, *mistake) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	p := parser{rest: text, variables: map[string]string{}, left: maxValues}
	line, counted := 1, 0 // the line at that place of the text
	for {
		p.skip()
		if p.rest == "" {
			return p.variables, nil
		}
		begin := len(text) - len(p.rest)
		line += strings.Count(text[counted:begin], "\n")
		counted = begin
		if m := p.statement(); m != nil {
			m.line = line
			return p.variables, m
		}
	}
}

// A parser reads statements, one after the other.
type parser struct {
	rest      string
	variables map[string]string
	left      int // bytes of further values
}

// skip skips spaces, line ends and comments before a statement.
func (p *parser) skip() {
	for {
		p.rest = strings.TrimLeftFunc(p.rest, unicode.IsSpace)
		if !strings.HasPrefix(p.rest, "#") {
			return
		}
		_, p.rest, _ = strings.Cut(p.rest, "\n")
	}
}

// statement reads one assignment. Another one may follow a value in quotes on the same line.
func (p *parser) statement() *mistake {
	if after, found := strings.CutPrefix(p.rest, "export"); found && strings.IndexFunc(after, isBlank) == 0 {
		p.rest = after
	}
	end := strings.IndexAny(p.rest, "=:\n")
	if end < 0 || p.rest[end] == '\n' {
		return notDotenv()
	}
	name := strings.TrimFunc(p.rest[:end], isBlank)
	switch {
	case !sentinels.ValidVariable(name):
		return notDotenv()
	case steering.MatchString(name):
		return &mistake{code: abi.Denied, why: "it sets " + name + ", which decides what programs execute", hint: "write " + name + ` in "env" of the definition or of a step`}
	}
	p.rest = strings.TrimLeftFunc(p.rest[end+1:], isBlank)
	raw, quote, m := p.value()
	if m != nil {
		return m
	}
	if quote == '"' {
		raw = escapes.ReplaceAllStringFunc(raw, unescape)
	}
	value, fits := raw, len(raw) <= p.left
	if quote != '\'' {
		value, fits = p.expand(raw)
	}
	if !fits {
		return &mistake{
			code: abi.Limit, why: fmt.Sprintf("its values have more than %d MiB together with what ${NAME} stands for", maxValues>>20),
			hint: "use ${NAME} of shorter values, or fewer of them",
		}
	}
	p.left -= len(value)
	p.variables[name] = value
	return nil
}

// value takes the text of a value from the rest. quote is what it is in, or 0.
func (p *parser) value() (raw string, quote byte, m *mistake) {
	if p.rest != "" && (p.rest[0] == '"' || p.rest[0] == '\'') {
		quote = p.rest[0]
		for i := 1; i < len(p.rest); i++ {
			if p.rest[i] == quote && p.rest[i-1] != '\\' {
				raw, p.rest = p.rest[1:i], p.rest[i+1:]
				return raw, quote, nil
			}
		}
		return "", 0, notDotenv()
	}
	end := strings.IndexAny(p.rest, "\n\r")
	if end < 0 {
		end = len(p.rest)
	}
	raw, p.rest = p.rest[:end], p.rest[end:]
	if comments := comment.FindAllStringSubmatchIndex(raw, -1); comments != nil {
		raw = raw[:comments[len(comments)-1][0]]
	}
	return strings.TrimFunc(raw, isBlank), 0, nil
}

// comment is the beginning of a comment behind a value without quotes, and blank what isBlank reports.
const blank = `\t\v\f\r \x{85}\x{A0}`

var comment = lazyregexp.New(`[` + blank + `]#`)

// isBlank reports whether a rune is a space within a line.
func isBlank(r rune) bool { return r != '\n' && (unicode.IsSpace(r) && r <= 0xA0) }

var escapes = lazyregexp.New(`(?s)\\.`)

// unescape returns what an escape in double quotes stands for. A $ stays escaped until variables are replaced.
func unescape(escape string) string {
	switch escape[1:] {
	case "n":
		return "\n"
	case "r":
		return "\r"
	case "$":
		return escape
	}
	return escape[1:]
}

var dollar = lazyregexp.New(`\\\$|\$\{([A-Z0-9_]+)\}`)

// expand replaces ${NAME} of variables that are set before, and \$ by $. Every other $ stays, since passwords have
// some. It reports whether the value fits. The length is checked before the value grows: with A=${B}${B} a few lines would have more than fits in memory.
func (p *parser) expand(raw string) (value string, fits bool) {
	var out strings.Builder
	add := func(text string) bool {
		if fits = out.Len()+len(text) <= p.left; fits {
			out.WriteString(text)
		}
		return fits
	}
	done := 0
	for _, m := range dollar.FindAllStringSubmatchIndex(raw, -1) {
		text := "$"
		if m[2] >= 0 {
			value, set := p.variables[raw[m[2]:m[3]]]
			if !set {
				continue
			}
			text = value
		}
		if !add(raw[done:m[0]]) || !add(text) {
			return "", false
		}
		done = m[1]
	}
	fits = add(raw[done:])
	return out.String(), fits
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
