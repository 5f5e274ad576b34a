package sentinels

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// An interpreter executes one of its arguments as code.
type interpreter struct {
	names   []string
	options []string // the argument behind one of these
	first   bool     // its first argument
	second  bool     // the one behind a word that is no option
	hint    string   // how it gets a value as data
	// own are parts of a line that give "$NAME" a meaning in the code of the interpreter; nil for one whose own
	// variables begin with "$", so that a "$" says nothing.
	own []string
}

var interpreters = []interpreter{
	{names: []string{"sh", "bash", "dash", "ash", "ksh", "zsh"}, options: []string{"-c", "-lc", "-ec", "-xc", "-euc"}, hint: `give it as an argument: sh -c 'echo "$1"' sh "$value"`},
	{names: []string{"su"}, options: []string{"-c"}, hint: "pass it on standard input"},
	{names: []string{"eval"}, first: true, hint: "leave eval out: a variable of a shell line has the value"},
	{names: []string{"ssh"}, second: true, hint: "pass it on standard input: the other machine's shell reads the line once more"},
	{names: []string{"python", "python2", "python3"}, options: []string{"-c"}, hint: `give it as an argument: python3 -c 'import sys; print(sys.argv[1])' "$value"`,
		own: []string{"Template("}},
	{names: []string{"node", "bun"}, options: []string{"-e", "-p", "-pe", "--eval", "--print"}, hint: `give it as an argument: node -e 'console.log(process.argv[1])' "$value"`,
		own: []string{"${NAME}", "let $NAME", "const $NAME", "var $NAME", "$NAME =>", "$NAME=>", "$NAME ="}},
	{names: []string{"perl", "ruby", "php", "lua", "Rscript"}, options: []string{"-e", "-E", "-ne", "-pe", "-r"}, hint: "give it as an argument behind the code"},
	{names: []string{"psql", "mysql", "mariadb", "clickhouse-client"}, options: []string{"-c", "-e", "-q", "--command", "--execute", "--query"}, hint: `pass it as a variable of the client, such as psql -v value="$value", and :'value' in the statement on standard input`},
	{names: []string{"sqlite3", "duckdb"}, options: []string{"-c"}, second: true, hint: `bind it: .parameter set @value "..." before the statement`},
	{names: []string{"jq"}, first: true, options: []string{"-r", "-e", "-c", "-n", "-s", "-rc", "-nr"}, hint: `give it with --arg: jq --arg v "$value" '.[$v]'`,
		own: []string{"arg NAME ", "argjson NAME ", "slurpfile NAME ", "rawfile NAME ", " as $NAME", " as [", " as {", "def "}},
	{names: []string{"awk", "gawk", "mawk"}, first: true, hint: `give it with -v: awk -v v="$value" '{print v}'`},
}

// codePattern matches a program with an argument in double quotes: the program, its options and
// other words, and the argument.
var codePattern = lazyregexp.New(`(?:^|[\s;&|(/])([A-Za-z][\w.-]*)((?:[ \t]+[^\s;&|"']+)*)[ \t]+("(?:[^"\\]|\\.)*")`)

// code warns about references in text that another interpreter than the shell takes as code:
// there a value is pasted, and executed. known reports whether a name is one of a value.
func (c *checker) code(path, line string, known func(name string) bool) {
	for _, m := range codePattern.FindAllStringSubmatch(line, -1) {
		in := interpreterOf(m[1], strings.Fields(m[2]))
		if in == nil {
			continue
		}
		c.pasted(path, m[1], strings.Trim(m[3], `"`), in, known)
	}
}

// argv warns about the same in a list of a program and its arguments.
func (c *checker) argv(at string, raw json.RawMessage) {
	var words []string
	strictjson.EachItem(raw, func(value []byte) bool { words = append(words, reference.Text(value)); return true })
	for i := 1; i < len(words); i++ {
		if in := interpreterOf(path.Base(words[0]), words[1:i]); in != nil {
			c.pasted(at, words[0], words[i], in, func(name string) bool { return c.set[name] || slices.Contains(Reserved, name) })
		}
	}
}

// pasted warns about each reference in code. Code that is one reference is stored code, which is
// meant to be executed.
func (c *checker) pasted(at, program, code string, in *interpreter, known func(name string) bool) {
	raw, err := json.Marshal(code)
	if err != nil || reference.IsReference(code) {
		return
	}
	for _, ref := range reference.In(raw) {
		if known(ref.Name) {
			c.warn(at, in.hint, "%s is pasted into code that %s executes: its value can change the code", ref, program)
		}
	}
}

// interpreterOf returns the interpreter that executes the argument behind the given ones, nil if
// the program is none or takes it as data.
func interpreterOf(program string, before []string) *interpreter {
	last := ""
	if len(before) > 0 {
		last = before[len(before)-1]
	}
	for i, in := range interpreters {
		if slices.Contains(in.names, program) && (slices.Contains(in.options, last) || in.first && last == "" || in.second && last != "" && !strings.HasPrefix(last, "-")) {
			return &interpreters[i]
		}
	}
	return nil
}

// plainPrograms take their arguments as they are: a "$" in single quotes means nothing to
// them. In the text of other programs, such as awk, jq, perl or sh, it may be theirs.
var plainPrograms = []string{
	"echo", "printf", "test", "[", "cat", "cd", "cp", "mv", "rm", "ln", "ls", "mkdir", "rmdir", "touch", "chmod", "chown", "curl", "wget", "git", "gh", "go", "npm", "pip",
	"head", "tail", "wc", "sort", "tee", "diff", "cmp", "tar", "zip", "unzip", "basename", "dirname", "realpath", "mail", "sentinel",
}

// literalIn returns how a program gets the value of a reference that stands in single quotes of its arguments in a line,
// if the program takes the "$" there as text.
func literalIn(program, line string, ref reference.Reference, at int) (hint string, literal bool) {
	if slices.Contains(plainPrograms, program) {
		return inDoubleQuotes(line, ref, at), true
	}
	i := slices.IndexFunc(interpreters, func(in interpreter) bool { return in.own != nil && slices.Contains(in.names, program) })
	if i < 0 {
		return "", false
	}
	meant := slices.ContainsFunc(interpreters[i].own, func(part string) bool {
		return strings.Contains(line, strings.ReplaceAll(part, "NAME", ref.Name))
	})
	return interpreters[i].hint, !meant
}

// shell warns about references that the shell would not expand. Names that are never set
// are variables of the shell, and so are those that the line assigns.
func (c *checker) shell(path string, raw json.RawMessage, by Interpreter) {
	lines := []json.RawMessage{raw}
	if len(raw) > 0 && raw[0] == '[' {
		lines = nil
		strictjson.EachItem(raw, func(line []byte) bool { lines = append(lines, line); return true })
	}
	c.inShell = true
	defer func() { c.inShell = false }()
	for _, line := range lines {
		text := reference.Text(line)
		c.text = text
		assigned := reference.AssignedInShellLine(text)
		own := make(map[string]bool, len(assigned))
		for _, name := range assigned {
			own[name] = true
		}
		belongs := func(name string) bool {
			return !c.set[name] || own[name] || slices.Contains(BuiltIn, name)
		}
		seen := map[string]bool{}
		sourced := sourcePattern.MatchString(text)
		reference.EachInShellLine(text, func(ref reference.Reference, quoted bool, program string, at int) {
			if m := indexedByVariable.FindStringSubmatch(text[at:]); m != nil && !quoted && strings.HasPrefix(text[at:], m[0]) {
				c.variableIndex(path, m[0])
			}
			switch {
			case quoted && program != "" && c.set[ref.Name] && !belongs(ref.Name) && c.innerShell(path, text, ref, at, seen):
			case optionalInShell.MatchString(text[at:]) && !quoted && c.set[ref.Name] && !belongs(ref.Name):
				m := optionalInShell.FindStringSubmatch(text[at:])
				c.warn(path, fmt.Sprintf(`write %s.%s if it always exists; else compute it before, with a step of type set: {"expr": "%s"}`, m[1], m[3], m[0]),
					"a shell line has no \"?.\": the line has the value of %s and behind it the text %q", m[1], m[2])
			case quoted:
				if hint, literal := literalIn(program, text, ref, at); literal && c.set[ref.Name] && !belongs(ref.Name) {
					c.warn(path, hint, "%s is in single quotes, so %s gets the name and not the value", ref, program)
				}
				return
			case seen[ref.String()]:
			case !c.set[ref.Name] && !sourced && !own[ref.Name] && ref.Name != strings.ToUpper(ref.Name):
				if ref.Path != "" || c.isTypo(ref.Name) {
					c.unknown(path, ref.Name, true, "")
				}
			case belongs(ref.Name):
			case slices.Contains(Reserved, ref.Name):
				c.member(path, ref)
				c.pathOfText(path, ref)
			case !c.assigned[ref.Name]:
				c.reference(path, ref)
			default:
				c.pathOfText(path, ref)
			}
			seen[ref.String()] = true
		})
		if reference.IsReference(strings.TrimSpace(text)) && !belongs(strings.Trim(strings.TrimSpace(text), "$")) {
			c.warn(path, `to execute a stored line, write eval "`+strings.TrimSpace(text)+`"`, "the line is one reference: the shell splits the value into words and executes the first of them")
		}
		for _, m := range foreignPattern.FindAllStringSubmatch(text, -1) {
			c.foreignInShell(path, m, belongs)
		}
		c.shellForms(path, text, assigned)
		if quote := reference.UnendedQuote(text); quote != "" {
			c.Add(Problem{Path: path, Kind: KindValue, Hint: "close it, or write \\" + quote + " for the character itself",
				Message: fmt.Sprintf("the shell line opens a quote %s and does not close it", quote)})
		}
		c.bashForms(path, text, by)
		c.code(path, text, func(name string) bool { return !belongs(name) || name == "event" || name == "item" })
	}
}

// optionalInShell matches a reference with "?." behind it, as other fields may have it.
var optionalInShell = lazyregexp.New(`^(\$[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*|\[(?:[0-9]+|"[^"]*")\])*)(\?\.([A-Za-z_][A-Za-z0-9_]*))`)

// innerShellPattern matches a line up to the code of a shell that the line starts: its name and options.
var innerShellPattern = lazyregexp.New(`(?:^|[\s;&|(/])(sh|bash|zsh|dash)((?:[ \t]+-[\w-]+)*[ \t]+-[a-z]*c)[ \t]+$`)

// innerShell warns of a reference at an offset of a line, in single quotes in the code of a shell
// that the line starts: variables of the line are not in its environment. seen has the pieces of
// code with a warning.
func (c *checker) innerShell(path, line string, ref reference.Reference, at int, seen map[string]bool) bool {
	start, end := quotesAround(line, at)
	if start < 0 {
		return false
	}
	m := innerShellPattern.FindStringSubmatch(line[:start])
	if m == nil {
		return false
	}
	code := line[start+1 : end]
	_, inEnv := c.env[ref.Name]
	strictjson.EachMember(c.stepEnv, func(name, _ []byte) bool { inEnv = inEnv || strictjson.IsString(name, ref.Name); return true })
	if inEnv || slices.Contains(reference.AssignedInShellLine(code), ref.Name) {
		return true
	}
	if key := code + "\x00" + ref.String(); !seen[key] {
		seen[key] = true
		c.warn(path, asArgument(m[1], m[2], code, line[end+1:], ref), "%s is in single quotes, so %s reads it, which has no such variable", ref, m[1])
	}
	return true
}

// quotesAround returns the offsets of the single quotes around a place in a line, -1 for none.
func quotesAround(line string, at int) (start, end int) {
	start, end = strings.LastIndexByte(line[:at], '\''), strings.IndexByte(line[at:], '\'')
	if start < 0 || end < 0 {
		return -1, -1
	}
	return start, at + end
}

// positionPattern matches an argument of a shell.
var positionPattern = lazyregexp.New(`\$\{?[0-9@*#]`)

// asArgument returns the hint for a reference in the code of an inner shell: the value as its
// argument, if it has no others and no other reference.
func asArgument(shell, options, code, behind string, ref reference.Reference) string {
	behind = strings.TrimLeft(behind, " \t")
	others := strings.Count(code, "$") != strings.Count(code, ref.String()) || positionPattern.MatchString(code)
	if others || behind != "" && !strings.ContainsAny(behind[:1], ";&|)<>\n") {
		return "give it as an argument: " + shell + options + ` 'echo "$1"' ` + shell + ` "` + ref.String() + `"`
	}
	var mended strings.Builder
	double := false
	for len(code) > 0 {
		switch {
		case strings.HasPrefix(code, ref.String()):
			argument := `"$1"`
			if double {
				argument = "$1"
			}
			mended.WriteString(argument)
			code = code[len(ref.String()):]
			continue
		case code[0] == '"':
			double = !double
		}
		mended.WriteByte(code[0])
		code = code[1:]
	}
	return "write " + shell + options + " '" + mended.String() + "' " + shell + ` "` + ref.String() + `"`
}

// inDoubleQuotes returns the hint for a reference at an offset in single quotes of a shell line: their
// text in double quotes, if that changes nothing else in it.
func inDoubleQuotes(line string, ref reference.Reference, at int) string {
	if start, end := quotesAround(line, at); start >= 0 {
		if text := line[start+1 : end]; strings.Count(text, "$") == strings.Count(text, ref.String()) && !strings.Contains(text, "`") && strings.ContainsAny(text, `"{`) {
			return `write "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `", if the value of the variable is meant`
		}
	}
	return "use double quotes, if the value of the variable is meant"
}

// foreignInShell warns about a match of foreignPattern in a shell line. Templates of other
// programs have the same forms, so a name has to be known, or one edit from a known one.
// No shell has ${name.path}.
func (c *checker) foreignInShell(path string, m []string, belongs func(string) bool) {
	switch first, rest := splitPath(m[1]); {
	case rest != "" && slices.Contains([]string{"env", "input", "inputs", "loop", "named", "steps"}, first):
		c.warn(path, c.ownForm(first, rest), "%s is not a reference, and stays as written", m[0])
	case m[1] != "" && (!belongs(first) || c.isTypo(first)):
		c.warn(path, "write $"+first+rest, "%s is not a reference, and stays as written", m[0])
	case m[4] != "" && !belongs(m[4]):
		c.warn(path, "write $"+m[4], "%s is not a reference, and stays as written", m[0])
	case m[2] != "" && !belongs(m[2]):
		c.warn(path, "write $"+m[2]+m[3], "%s is a variable of the shell, which does not have the value", m[0])
	case strings.HasPrefix(m[3], "."):
		c.warn(path, "a reference is $name.field, where name is the \"outputTo\" of a step, an input or one of \"variables\"", "%s is a bad substitution in a shell", m[0])
	}
}

// sourcePattern matches a line that may get variables from elsewhere.
var sourcePattern = lazyregexp.New(`(?:^|[\s;&|(])(?:source|eval|\.)\s`)

// variableIndex warns of a text with an index that is a variable: both are replaced by their texts.
func (c *checker) variableIndex(path, text string) {
	for _, m := range indexedByVariable.FindAllStringSubmatch(text, -1) {
		if c.set[m[1]] && c.set[m[2]] {
			c.warn(path, `compute it with a step of type set, where {"expr": "`+m[0]+`"} is the value`,
				"%s in a text is the texts of $%s and of $%s: only an expression has an index that is a variable", m[0], m[1], m[2])
			return
		}
	}
}

// indexedByVariable matches a reference with a reference in square brackets behind it.
var indexedByVariable = lazyregexp.New(`\$([A-Za-z_]\w*)(?:\.\w+|\[[0-9]+\])*\[\$([A-Za-z_]\w*)[\w.]*\](?:\.\w+|\[[0-9]+\])*`)

// listOfEach reports a reference in each of a loop whose value is known to be no list.
func (c *checker) listOfEach(path, text string) {
	m := comparedPattern.FindStringSubmatch(text)
	if m == nil {
		return
	}
	types, typ := c.fields[m[1]], ""
	field := strings.TrimLeft(m[2], "?.")
	switch {
	case field != "":
		typ = types[field]
	case c.texts[m[1]]:
		typ = "string"
	case types != nil:
		typ = "output"
	}
	var hint, what string
	switch lines := types["text"] == "string" && slices.Contains([]string{"", "text", "stdout", "output"}, field); {
	case typ == "output" && types["stdout"] != "":
		what, hint = "an object, the output of a step", linesHint(m[1])
	case typ == "output" && types["stopReason"] != "":
		return // with a schema the output of a model is the reply, which may be a list
	case typ == "output":
		var lists []string
		for name, typ := range types {
			if typ == "array" {
				lists = append(lists, `"$`+m[1]+"."+name+`"`)
			}
		}
		slices.Sort(lists)
		if what = "an object, the output of a step"; len(lists) > 0 {
			hint = "write " + strings.Join(lists, " or ")
		}
	case typ == "string" && lines:
		what, hint = "a text", linesHint(m[1])
	case typ == "string":
		what, hint = "a text", `for its lines write {"expr": "`+text+`.split('\\n')"}`
	case typ == "integer":
		what, hint = "a number", `write "count": "`+text+`"`
	case typ == "boolean":
		what = "true or false"
	default:
		return
	}
	c.Add(Problem{Path: path, Kind: KindValue, Hint: hint, Message: text + " is " + what + ", and no list"})
}

// linesHint says how a loop gets the list in the text of a variable that a step sets.
func linesHint(name string) string {
	return `for its lines add "parse": "lines", or for a list in JSON "parse": "json", to the step that sets $` + name + ` and write "each": "$` + name + `"`
}
