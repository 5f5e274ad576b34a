package llm

import "github.com/sentinel-runtime/sentinel/sdk"

// shellCommand is the command whose calls differ in kind by the program that they start.
const shellCommand = "code/shell/execute"

// maxKind limits the text of a kind, in bytes, so that a question shows all of it.
const maxKind = 100

// A kind is what one approval covers until the step ends.
type kind struct {
	key  string // equal for calls of one kind
	text string // for people: the command, or the program with its plain words
	one  bool   // of this call alone
}

// covered is the kind for programs: "" for a call of which no other is of its kind.
func (k kind) covered() string {
	if k.one {
		return ""
	}
	return k.text
}

// kindOf returns the kind of a call. That of a shell line is its program and the plain
// words behind it, such as go test or npm run build: paths may differ, and options that only
// choose what is done and how it is shown. This holds for the operations of harmlessVerbs,
// whose other arguments neither replace, send, bring in nor start anything. Any other line is
// a kind of its own, of which no other call is: nothing tells what its program does with other
// arguments. So is a line with which a shell would do more than start one program, and one
// with a word behind the plain ones that is more than the name of a file, such as
// main:production. The folder belongs to the kind unless it is that of the step: what a program
// reads there, such as settings, may have it do something else. Calls of any other command are
// of one kind.
func kindOf(command string, arguments sdk.Value) kind {
	if command != shellCommand {
		return kind{key: command, text: command}
	}
	all, simple := wordsOf(arguments)
	words := all
	if simple {
		words = plainWords(all)
		simple = len(words) > 0 && argumentsAreHarmless(words, all[len(words):])
	}
	text := join(words, " ")
	if dir := folderOf(arguments); dir != "" {
		simple = simple && isPath(dir)
		text += " (in " + dir + ")" // no plain word has a parenthesis
	}
	if !simple || len(text) > maxKind || !isHarmless(words) {
		return kind{key: command + " " + arguments.Canonical(), text: "this line", one: true}
	}
	return kind{key: command + "\n" + text, text: text}
}

// folderOf returns the folder of a call as it names it, "" for that of the step. A call that
// wordsOf takes for simple has one name of it at most.
func folderOf(arguments sdk.Value) string {
	for _, name := range [...]string{"cwd", "workingDir", "workdir"} {
		if dir := arguments.Get(name).StringOr(""); dir != "" && dir != "." && dir != "./" {
			return dir
		}
	}
	return ""
}

// isPath reports whether a person sees by a path which one it is.
func isPath(path string) bool {
	for i := 0; i < len(path); i++ {
		if c := path[i]; !isLetter(c) && !isDigit(c) && !has("_-./", c) {
			return false
		}
	}
	return true
}

// wordsOf returns the words of a call that starts one program, and that has nothing but
// the line, the folder and how to wait. simple is false for every other call.
func wordsOf(arguments sdk.Value) (words []string, simple bool) {
	line, list, folder := "", []string(nil), false
	for name, v := range arguments.Fields() {
		if !v.Given() || v.Len() == 0 && (v.Kind() == sdk.KindList || v.Kind() == sdk.KindObject) {
			continue
		}
		ok := true
		switch name {
		case "cwd", "workingDir", "workdir":
			if _, ok = v.AsString(); !ok || folder {
				return nil, false
			}
			folder = true
		case "wait", "timeoutMs", "rules":
		case "command":
			line, ok = v.AsString()
		case "argv", "args":
			if list != nil {
				return nil, false
			}
			list, ok = v.AsStrings()
		default: // variables and what the program reads may be code
			return nil, false
		}
		if !ok {
			return nil, false
		}
	}
	if line == "" {
		return list, len(list) > 0 && arguments.Get("args").Len() == 0
	}
	if words, simple = splitLine(line); !simple || arguments.Get("argv").Len() > 0 {
		return nil, false
	}
	return append(words, list...), true // "$@" behind the line
}

// splitLine splits a shell line into words. simple is false if a shell would do more with
// it than that: anything but letters, digits and characters without a meaning outside of
// quotes, and inside of quotes anything that is expanded or escaped there.
func splitLine(line string) (words []string, simple bool) {
	var word []byte
	inWord, quote := false, byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c < ' ' || c == 0x7f || c == '$' || c == '`' || c == '\\' || c == '!':
			return nil, false
		case quote != 0:
			if c == quote {
				quote = 0
			} else {
				word = append(word, c)
			}
			continue
		case c == ' ':
			if inWord {
				words = append(words, string(word))
			}
			word, inWord = word[:0], false
			continue
		case c == '"' || c == '\'':
			quote = c
			word = append(word, 0) // so that a quoted word is not a plain one
		case isLetter(c) || isDigit(c) || has("_-./:=,+@%", c):
			word = append(word, c)
		default:
			return nil, false
		}
		inWord = true
	}
	if inWord {
		words = append(words, string(word))
	}
	return words, quote == 0 && len(words) > 0
}

// plainWords returns the program and the plain words behind it; none if the first word is
// not the name of a program, such as an assignment.
func plainWords(words []string) []string {
	for i := 0; i < len(words[0]); i++ {
		if c := words[0][i]; !isLetter(c) && !isDigit(c) && !has("_./", c) && (i == 0 || !has("-+", c)) {
			return nil
		}
	}
	n := 1
	for n < len(words) && isPlain(words[n]) {
		n++
	}
	return words[:n]
}

// isPlain reports whether a word looks like the name of an operation: letters, digits,
// _, - and :, from a letter on.
func isPlain(word string) bool {
	for i := 0; i < len(word); i++ {
		if c := word[i]; !isLetter(c) && (i == 0 || !isDigit(c) && !has("_-:", c)) {
			return false
		}
	}
	return word != ""
}

// harmlessVerbs are operations, by program, which one approval covers with other files and
// harmless options.
func harmlessVerbs(program string) string {
	switch program {
	case "go":
		return " test build vet list doc version "
	case "git":
		return " status diff log show add commit blame grep shortlog describe ls-files "
	case "npm", "pnpm", "yarn", "bun":
		return " test run "
	case "cargo":
		return " test build check clippy doc bench "
	case "mvn", "gradle":
		return " test compile check verify build "
	case "dotnet", "swift", "mix":
		return " test build compile "
	}
	return ""
}

// isHarmless reports whether the program and the plain words behind it are an operation of
// harmlessVerbs, or targets of make.
func isHarmless(words []string) bool {
	if len(words) < 2 {
		return false
	}
	if words[1] == "run" && len(words) == 2 {
		return false // what follows is what is run
	}
	return words[0] == "make" || contains(harmlessVerbs(words[0]), " "+words[1]+" ")
}

// harmlessOptions are options, by program, that write no file and start no program, with or
// without a number behind them: -n20.
func harmlessOptions(program string) string {
	switch program {
	case "go":
		return " -v -run -count -race -short -timeout -bench -benchmem -benchtime -cover -failfast -json -cpu -p -tags -shuffle -parallel -list -skip "
	case "git":
		return " -m --message -a --all -s --short --stat --oneline -n -p --patch --name-only --name-status --cached --staged --graph" +
			" --since --until --author --follow -u -v -q --quiet - "
	case "npm", "pnpm", "yarn", "bun":
		return " -s --silent --if-present -q "
	case "cargo":
		return " -p --package --release --workspace --all --lib --bins --tests --no-fail-fast -q --quiet -v --verbose --all-targets --all-features --features --locked --offline --no-run "
	case "make":
		return " -j -k -s -B "
	}
	return ""
}

// argumentsAreHarmless reports whether the words behind a program and its plain words are
// names of files and harmless options. A word with one of :+@= names something else: the branch that
// a fetch replaces, an address, a version, a variable of make. It is text in the message of git commit -m
// MESSAGE, where nothing before -m can take it as a value.
func argumentsAreHarmless(plainOnes, words []string) bool {
	known := harmlessOptions(plainOnes[0])
	commit := len(plainOnes) == 2 && plainOnes[0] == "git" && plainOnes[1] == "commit"
	if commit && len(words) > 1 && (words[0] == "-m" || words[0] == "--message") {
		words = words[2:]
	}
	for _, word := range words {
		plain := ""
		for i := 0; i < len(word); i++ {
			if word[i] != 0 { // that of a quote
				plain += word[i : i+1]
			}
		}
		if plain == "" || plain[0] != '-' {
			if plainOnes[0] == "make" {
				return false // another target
			}
			for i := 0; i < len(plain); i++ {
				if has(":+@=", plain[i]) {
					return false
				}
			}
			continue
		}
		end := 0
		for end < len(plain) && plain[end] != '=' {
			end++
		}
		name := plain[:end]
		for len(name) > 1 && isDigit(name[len(name)-1]) {
			name = name[:len(name)-1]
		}
		if !contains(known, " "+name+" ") {
			return false
		}
	}
	return true
}

func contains(text, part string) bool {
	for i := 0; i+len(part) <= len(text); i++ {
		if text[i:i+len(part)] == part {
			return true
		}
	}
	return false
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

func has(set string, c byte) bool {
	for i := 0; i < len(set); i++ {
		if set[i] == c {
			return true
		}
	}
	return false
}
