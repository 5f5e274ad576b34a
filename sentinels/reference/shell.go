package reference

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
)

// shellVariable begins the names of the environment variables that stand for references.
const shellVariable = "SENTINEL_"

// maxShellValue is the largest value in bytes of one environment variable on Linux
// (MAX_ARG_STRLEN), without the name.
const maxShellValue = 128<<10 - 64

// ShellLine rewrites a shell line so that no value becomes part of its code: a
// reference to a variable that lookup knows becomes ${SENTINEL_1}, ..., and its text is
// added to env. Lines may share env: the names continue after those in it. The author's
// quoting stays, and every other "$" belongs to the shell, also that of a name that the
// line itself assigns. A line with problems must not be executed: a reference in it would
// not have its value.
func ShellLine(env map[string]string, line string, lookup Lookup) (rewritten string, notes Notes, problems []error) {
	names := make(map[string]string)
	add := func(err error) {
		if !slices.ContainsFunc(problems, func(p error) bool { return p.Error() == err.Error() }) {
			problems = append(problems, err)
		}
	}
	report := func(format string, args ...any) { add(fmt.Errorf(format, args...)) }
	assigned := AssignedInShellLine(line)
	rewritten = scanShell(line, func(ref Reference, at place) string {
		written := ref.String()
		if slices.Contains(assigned, ref.Name) {
			return written
		}
		value, known := lookup(ref.Name)
		switch {
		case !known:
			return written
		case at == literal: // the text of another program, such as awk, jq or perl
			return written
		case len(value) == 0:
			note(&notes.Unset, ref)
			value = null
		}
		part, ok := Path(value, ref.Path)
		if string(value) == "null" && slices.Contains(notes.Unset, written) {
			part, ok = null, true
		}
		if !ok {
			add(missing(value, ref, true))
			return written
		}
		text := Text(part)
		switch name, again := names[written]; {
		case at == arithmetic && !isNumber(text) && !slices.Contains(notes.Unset, written):
			report("%s is in an arithmetic expression, and its value %s is not a number: some shells would execute what is in it", written, excerpt(text))
			return written
		case again:
			return "${" + name + "}"
		case strings.IndexByte(text, 0) >= 0:
			report("%s has a zero byte, which a shell variable cannot contain", written)
			return written
		case len(text) > maxShellValue:
			report("%s has %d bytes, the limit of a shell variable is %d; pass it on stdin", written, len(text), maxShellValue)
			return written
		}
		n := len(env) + 1
		name := shellVariable + strconv.Itoa(n)
		for _, taken := env[name]; taken; _, taken = env[name] {
			n++
			name = shellVariable + strconv.Itoa(n)
		}
		names[written] = name
		env[name] = text
		return "${" + name + "}"
	})
	if len(names) > 0 {
		notes.Written = make(map[string]string, len(names))
		for written, name := range names {
			notes.Written[name] = written
		}
	}
	return rewritten, notes, problems
}

// EachInShellLine calls f for every reference in a shell line outside comments; quoted
// is true if the shell does not expand it, and program is then the command whose argument
// it is in, "" in the body of a here-document. at is its offset in the line.
func EachInShellLine(line string, f func(ref Reference, quoted bool, program string, at int)) {
	s := &shellScan{line: line}
	s.replace = func(ref Reference, at place) string {
		program := ""
		if at == literal && !s.inBody {
			program = LastProgram(line[:s.at])
		}
		f(ref, at == literal, program, s.at)
		return ""
	}
	s.scan()
}

// WithoutQuoted returns a shell line with empty quotes in place of what is quoted.
func WithoutQuoted(line string) string { return quotedPattern.ReplaceAllString(line, "''") }

// LastProgram returns the first word of the command that a shell line ends in, without
// assignments and the words that execute another command in place of themselves.
func LastProgram(line string) string {
	line = quotedPattern.ReplaceAllString(strings.ReplaceAll(line, "\\\n", " "), `""`)
	if i := strings.LastIndexByte(line, '\''); i >= 0 { // the line ends in an argument in single quotes
		line = line[:i]
	}
	if i := strings.LastIndexAny(line, ";|&\n(`{"); i >= 0 {
		line = line[i+1:]
	}
	for _, word := range strings.Fields(line) {
		name, _, assigns := strings.Cut(word, "=")
		switch {
		case assigns && IsName(name):
		case slices.Contains([]string{"exec", "command", "time", "then", "do", "else", "if", "while", "until", "!", "sudo", "env", "nice", "nohup"}, word):
		default:
			return word
		}
	}
	return ""
}

// AssignedInShellLine returns the names that a shell line assigns itself, by "x=...",
// "for x in", "read x", "local x" and their like, in any order. These names belong to the
// shell in the whole line. Words within quotes are not searched.
func AssignedInShellLine(line string) []string {
	if !strings.Contains(line, "$") {
		return nil
	}
	var names []string
	seen := map[string]bool{}
	for _, m := range assignPattern.FindAllStringSubmatch(WithoutQuoted(line), -1) {
		for _, word := range strings.Fields(m[1] + " " + m[2] + " " + m[3]) {
			name, _, _ := strings.Cut(word, "=")
			if name = strings.TrimSuffix(name, "+"); IsName(name) && !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}

var (
	quotedPattern = lazyregexp.New(`'[^']*'|"(?:[^"\\]|\\.)*"`)
	// Assignments at the start of a command, the variable of for and select, and the words
	// after read, local, export, declare, typeset and readonly.
	assignPattern = lazyregexp.New(`(?m)(?:(?:^|[;&|({` + "`" + `]|\b(?:then|do|else|elif|if|while|until|time)\s)\s*((?:[A-Za-z_]\w*\+?=[^\s;&|]*[ \t]*)+)` +
		`|\b(?:for|select)\s+([A-Za-z_]\w*)\b|\b(?:read|local|export|declare|typeset|readonly)((?:[ \t]+[-\w=']+)+))`)
)

// A place is where a reference is in a shell line.
type place int

const (
	expanded   place = iota // the shell expands it
	literal                 // in quotes where it does not
	arithmetic              // in $((...)), where a shell evaluates what is in a value
)

// isNumber reports whether arithmetic takes a text as one number.
func isNumber(text string) bool { return numberPattern.MatchString(text) }

var numberPattern = lazyregexp.New(`^[+-]?(?:[0-9]+|0[xX][0-9a-fA-F]+)$`)

// excerpt returns the beginning of a value in quotes.
func excerpt(text string) string { return strconv.Quote(textcut.Mark(text, 40)) }

// shellScan follows the quoting of a POSIX shell closely enough to decide whether the
// shell expands a "$". If it is wrong, a value is missing or a problem is reported; a
// value never becomes code, because only the names of variables are inserted.
type shellScan struct {
	line    string
	at      int
	out     strings.Builder
	replace func(ref Reference, at place) string
	within  []byte // open: '"', '(' a group or $(, 'a' $((, '{' ${, 'q' ${ inside quotes, '`'
	heredoc []heredoc
	inBody  bool // of a here-document
	unended bool // a single quote is not closed
}

// heredoc is a here-document whose body starts at the next line.
type heredoc struct {
	end    string
	quoted bool // no expansion in the body
	tabs   bool // <<-
}

// UnendedQuote returns the quote that a shell line opens and does not close, "" for none.
// Of a line with a here-document it returns "", because only its shell knows where that ends.
func UnendedQuote(line string) string {
	if strings.Contains(line, "<<") {
		return ""
	}
	s := &shellScan{line: line, replace: func(Reference, place) string { return "" }}
	s.scan()
	if s.unended {
		return "'"
	}
	for _, c := range s.within {
		if c == '"' || c == '`' {
			return string(c)
		}
	}
	return ""
}

// scanShell returns line with each reference outside comments replaced by what
// replace returns.
func scanShell(line string, replace func(ref Reference, at place) string) string {
	s := &shellScan{line: line, replace: replace}
	s.scan()
	return s.out.String()
}

func (s *shellScan) scan() {
	for s.at < len(s.line) {
		s.step()
	}
}

// top returns the innermost open quote or group, 0 for none.
func (s *shellScan) top() byte {
	if len(s.within) == 0 {
		return 0
	}
	return s.within[len(s.within)-1]
}

func (s *shellScan) push(c byte) { s.within = append(s.within, c) }
func (s *shellScan) pop()        { s.within = s.within[:len(s.within)-1] }

// copy copies n bytes to the output.
func (s *shellScan) copy(n int) {
	n = min(n, len(s.line)-s.at)
	s.out.WriteString(s.line[s.at : s.at+n])
	s.at += n
}

func (s *shellScan) has(prefix string) bool { return strings.HasPrefix(s.line[s.at:], prefix) }

// step copies one token.
func (s *shellScan) step() {
	top := s.top()
	quoted := top == '"' || top == 'q'
	switch c := s.line[s.at]; {
	case c == '\\':
		s.copy(2)
	case c == '$':
		s.dollar(quoted)
	case c == '"' && top == '"':
		s.pop()
		s.copy(1)
	case c == '"':
		s.push('"')
		s.copy(1)
	case c == '`' && slices.Contains(s.within, '`'):
		for s.top() != '`' {
			s.pop()
		}
		s.pop()
		s.copy(1)
	case c == '`':
		s.push('`')
		s.copy(1)
	case c == '}' && (top == '{' || top == 'q'):
		s.pop()
		s.copy(1)
	case quoted:
		s.copy(1)
	case c == '\'':
		s.literal(s.quotedEnd(s.at+1, false))
	case c == '(':
		s.push('(')
		s.copy(1)
	case c == ')' && top == 'a' && s.has("))"):
		s.pop()
		s.copy(2)
	case c == ')' && top == '(':
		s.pop()
		s.copy(1)
	case c == '#' && top != 'a' && top != '{' && s.wordStart():
		s.copy(strings.IndexByte(s.line[s.at:]+"\n", '\n'))
	case c == '<' && top != 'a' && top != '{' && s.has("<<") && !s.has("<<<"):
		s.openHeredoc()
	case c == '<' && s.has("<<<"):
		s.copy(3)
	case c == '\n' && len(s.heredoc) > 0:
		s.copy(1)
		s.bodies()
	default:
		s.copy(1)
	}
}

// dollar copies a token that starts with a dollar. "$$" is the shell's process id, not
// an escaped dollar as in other text.
func (s *shellScan) dollar(quoted bool) {
	switch {
	case s.has("$(("):
		s.push('a')
		s.copy(3)
	case s.has("$("):
		s.push('(')
		s.copy(2)
	case s.has("${"):
		kind := byte('{')
		if quoted {
			kind = 'q'
		}
		s.push(kind)
		s.copy(2)
	case s.has("$$"):
		s.copy(2)
	case s.has("$'") && !quoted:
		s.copy(1)
		s.literal(s.quotedEnd(s.at+1, true))
	default:
		at := expanded
		if slices.Contains(s.within, 'a') {
			at = arithmetic
		}
		s.reference(at)
	}
}

// reference copies a "$", or replaces the reference that starts with it.
func (s *shellScan) reference(at place) {
	ref, ok := referenceAt(s.line, s.at, false)
	if !ok {
		s.copy(1)
		return
	}
	s.out.WriteString(s.replace(ref, at))
	s.at = ref.end
}

// quotedEnd returns the offset after the closing single quote.
func (s *shellScan) quotedEnd(from int, escapes bool) int {
	for i := from; i < len(s.line); i++ {
		switch {
		case escapes && s.line[i] == '\\':
			i++
		case s.line[i] == '\'':
			return i + 1
		}
	}
	s.unended = true
	return len(s.line)
}

// literal copies everything up to end and reports references as quoted.
func (s *shellScan) literal(end int) {
	for s.at < end {
		if s.has("$$") {
			s.copy(2)
		} else if s.line[s.at] == '$' {
			s.reference(literal)
		} else {
			s.copy(1)
		}
	}
}

// wordStart reports whether a word, and so a comment, can start here.
func (s *shellScan) wordStart() bool {
	return s.at == 0 || strings.IndexByte(" \t\n;&|(`", s.line[s.at-1]) >= 0
}

// openHeredoc reads "<<-'END'".
func (s *shellScan) openHeredoc() {
	start := s.at
	i := s.at + 2
	var h heredoc
	if i < len(s.line) && s.line[i] == '-' {
		h.tabs = true
		i++
	}
	for i < len(s.line) && (s.line[i] == ' ' || s.line[i] == '\t') {
		i++
	}
	var end strings.Builder
	quote := byte(0)
	for ; i < len(s.line); i++ {
		c := s.line[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			end.WriteByte(c)
		case c == '\'' || c == '"':
			quote, h.quoted = c, true
		case c == '\\':
			h.quoted = true
		case strings.IndexByte(" \t\n;&|<>()`", c) >= 0:
			goto done
		default:
			end.WriteByte(c)
		}
	}
done:
	h.end = end.String()
	if h.end != "" {
		s.heredoc = append(s.heredoc, h)
	}
	s.copy(i - start)
}

// bodies copies the bodies of the here-documents that were opened in the line before.
// Quotes have no meaning in them.
func (s *shellScan) bodies() {
	s.inBody = true
	defer func() { s.inBody = false }()
	for _, h := range s.heredoc {
		for s.at < len(s.line) {
			length := strings.IndexByte(s.line[s.at:]+"\n", '\n')
			line := s.line[s.at : s.at+length]
			if h.tabs {
				line = strings.TrimLeft(line, "\t")
			}
			if line == h.end {
				s.copy(length + 1)
				break
			}
			s.body(min(s.at+length+1, len(s.line)), h.quoted)
		}
	}
	s.heredoc = nil
}

// body copies a line of a here-document. A command substitution in it is read like
// other text, without its quotes.
func (s *shellScan) body(end int, quoted bool) {
	if quoted {
		s.literal(end)
		return
	}
	for s.at < end {
		switch {
		case s.line[s.at] == '\\' || s.has("$$"):
			s.copy(2)
		case s.line[s.at] == '$':
			s.reference(expanded)
		default:
			s.copy(1)
		}
	}
}
