package sentinels

import (
	"encoding/json"
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
}

var interpreters = []interpreter{
	{names: []string{"sh", "bash", "dash", "ash", "ksh", "zsh"}, options: []string{"-c", "-lc", "-ec", "-xc", "-euc"}, hint: `give it as an argument: sh -c 'echo "$1"' sh "$value"`},
	{names: []string{"su"}, options: []string{"-c"}, hint: "pass it on standard input"},
	{names: []string{"eval"}, first: true, hint: "leave eval out: a variable of a shell line has the value"},
	{names: []string{"ssh"}, second: true, hint: "pass it on standard input: the other machine's shell reads the line once more"},
	{names: []string{"python", "python2", "python3"}, options: []string{"-c"}, hint: `give it as an argument: python3 -c 'import sys; print(sys.argv[1])' "$value"`},
	{names: []string{"node", "bun"}, options: []string{"-e", "-p", "-pe", "--eval", "--print"}, hint: `give it as an argument: node -e 'console.log(process.argv[1])' "$value"`},
	{names: []string{"perl", "ruby", "php", "lua", "Rscript"}, options: []string{"-e", "-E", "-ne", "-pe", "-r"}, hint: "give it as an argument behind the code"},
	{names: []string{"psql", "mysql", "mariadb", "clickhouse-client"}, options: []string{"-c", "-e", "-q", "--command", "--execute", "--query"}, hint: `pass it as a variable of the client, such as psql -v value="$value", and :'value' in the statement on standard input`},
	{names: []string{"sqlite3", "duckdb"}, options: []string{"-c"}, second: true, hint: `bind it: .parameter set @value "..." before the statement`},
	{names: []string{"jq"}, first: true, options: []string{"-r", "-e", "-c", "-n", "-s", "-rc", "-nr"}, hint: `give it with --arg: jq --arg v "$value" '.[$v]'`},
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
