package reference_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sentinel-runtime/sentinel/sentinels/reference"
)

func TestShellLine(t *testing.T) {
	for _, tt := range []struct {
		in, out  string
		env      map[string]string
		problems int
	}{
		{`echo $s`, `echo ${SENTINEL_1}`, map[string]string{"SENTINEL_1": "text"}, 0},
		{`echo "$s" $n "$s"x`, `echo "${SENTINEL_1}" ${SENTINEL_2} "${SENTINEL_1}"x`, map[string]string{"SENTINEL_1": "text", "SENTINEL_2": "5"}, 0},
		{`echo $HOME $? $$ $1 $(pwd) ${s} $((1+n))`, `echo $HOME $? $$ $1 $(pwd) ${s} $((1+n))`, nil, 0},
		{`echo '$s'`, `echo '$s'`, nil, 0},
		{`jq --arg name "$s" '.[] | select(.n == $s)'`, `jq --arg name "${SENTINEL_1}" '.[] | select(.n == $s)'`, map[string]string{"SENTINEL_1": "text"}, 0},
		{`awk '{print $1 $s}'`, `awk '{print $1 $s}'`, nil, 0},
		{`echo '$HOME'`, `echo '$HOME'`, nil, 0},
		{`echo "it's $s"`, `echo "it's ${SENTINEL_1}"`, map[string]string{"SENTINEL_1": "text"}, 0},
		{`echo \$s \'$s`, `echo \$s \'${SENTINEL_1}`, map[string]string{"SENTINEL_1": "text"}, 0},
		{`echo "$(echo '$s' "$s")"`, `echo "$(echo '$s' "${SENTINEL_1}")"`, map[string]string{"SENTINEL_1": "text"}, 0},
		{"echo a # don't $s\necho $s", "echo a # don't $s\necho ${SENTINEL_1}", map[string]string{"SENTINEL_1": "text"}, 0},
		{"cat <<EOF\ndon't $s\nEOF\necho '$s'", "cat <<EOF\ndon't ${SENTINEL_1}\nEOF\necho '$s'", map[string]string{"SENTINEL_1": "text"}, 0},
		{"cat <<-'EOF'\n\t$s\n\tEOF\necho $s", "cat <<-'EOF'\n\t$s\n\tEOF\necho ${SENTINEL_1}", map[string]string{"SENTINEL_1": "text"}, 0},
		{`cat <<<$s`, `cat <<<${SENTINEL_1}`, map[string]string{"SENTINEL_1": "text"}, 0},
		{`echo $review.usage.tokens`, `echo ${SENTINEL_1}`, map[string]string{"SENTINEL_1": "12"}, 0},
		{`echo $review`, `echo ${SENTINEL_1}`, map[string]string{"SENTINEL_1": `looks "good"`}, 0},
		{`cat $s.txt`, `cat $s.txt`, nil, 1},
		{`echo $nul`, `echo $nul`, nil, 1},
		{`echo $evil`, `echo ${SENTINEL_1}`, map[string]string{"SENTINEL_1": "'; rm -rf / #$(touch x)"}, 0},
		{"echo `echo '$s'` \"`echo $s`\"", "echo `echo '$s'` \"`echo ${SENTINEL_1}`\"", map[string]string{"SENTINEL_1": "text"}, 0},
		{`echo "${x:-'$s'}" ${x:-$n}`, `echo "${x:-'${SENTINEL_1}'}" ${x:-${SENTINEL_2}}`, map[string]string{"SENTINEL_1": "text", "SENTINEL_2": "5"}, 0},
		{`echo $'it\'s $s' $s`, `echo $'it\'s $s' ${SENTINEL_1}`, map[string]string{"SENTINEL_1": "text"}, 0},
		{`echo ${#x} a#'$s'`, `echo ${#x} a#'$s'`, nil, 0},
		{`echo '$s`, `echo '$s`, nil, 0},
		{`plain`, `plain`, nil, 0},
		{`ls $s?.log "$obj["a"].b_1[0]"`, `ls ${SENTINEL_1}?.log "${SENTINEL_2}"`, map[string]string{"SENTINEL_1": "text", "SENTINEL_2": "10"}, 0},
		// Arithmetic evaluates what is in a value, such as an index of an array with a command.
		{`echo $((1 + $n))`, `echo $((1 + ${SENTINEL_1}))`, map[string]string{"SENTINEL_1": "5"}, 0},
		{`echo "$(( $evil ))"`, `echo "$(( $evil ))"`, nil, 1},
		{`echo $s $((s + $s))`, `echo ${SENTINEL_1} $((s + $s))`, map[string]string{"SENTINEL_1": "text"}, 1},
		{`echo $(( ($s) * 2 ))`, `echo $(( ($s) * 2 ))`, nil, 1},
		// "In a shell line, a name that the line itself assigns (`x=`, `for x in`, `read x`) belongs to the shell."
		{`s=1; echo $s`, `s=1; echo $s`, nil, 0},
		{`for n in 1 2; do echo $n $s; done`, `for n in 1 2; do echo $n ${SENTINEL_1}; done`, map[string]string{"SENTINEL_1": "text"}, 0},
		{`while read -r s n; do echo $s; done`, `while read -r s n; do echo $s; done`, nil, 0},
		{`A=1 s=2 sh x; local n=3; echo $s $n`, `A=1 s=2 sh x; local n=3; echo $s $n`, nil, 0},
		{`docker run -e s=$s x`, `docker run -e s=${SENTINEL_1} x`, map[string]string{"SENTINEL_1": "text"}, 0},
		{`echo "s=$s"`, `echo "s=${SENTINEL_1}"`, map[string]string{"SENTINEL_1": "text"}, 0},
	} {
		env := make(map[string]string)
		out, _, problems := reference.ShellLine(env, tt.in, lookup)
		if out != tt.out {
			t.Errorf("%s\nbecame %s\nwant   %s", tt.in, out, tt.out)
		}
		if diff := cmp.Diff(tt.env, env, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: env (-want +got):\n%s", tt.in, diff)
		}
		if len(problems) != tt.problems {
			t.Errorf("%s: problems %q, want %d", tt.in, problems, tt.problems)
		}
	}
}

// TestShellLinesOfOneStep checks that lines of one step get different names.
func TestShellLinesOfOneStep(t *testing.T) {
	env := map[string]string{"SENTINEL_2": "mine"}
	first, _, _ := reference.ShellLine(env, `echo $s`, lookup)
	second, _, _ := reference.ShellLine(env, `echo $n $s`, lookup)
	if first != `echo ${SENTINEL_3}` || second != `echo ${SENTINEL_4} ${SENTINEL_5}` {
		t.Errorf("%s; %s", first, second)
	}
	want := map[string]string{"SENTINEL_2": "mine", "SENTINEL_3": "text", "SENTINEL_4": "5", "SENTINEL_5": "text"}
	if diff := cmp.Diff(want, env); diff != "" {
		t.Error(diff)
	}
}

// TestShellLineRuns prints hostile values with a real shell.
func TestShellLineRuns(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell")
	}
	for line, want := range map[string]string{
		`printf %s "$evil"`:                       "'; rm -rf / #$(touch x)",
		`printf %s "$quote" "a$n"`:                "it's $HOMEa5",
		"cat <<EOF\n$evil\nEOF":                   "'; rm -rf / #$(touch x)\n",
		`printf %s "$(printf %s "$evil")"`:        "'; rm -rf / #$(touch x)",
		`x=$n; printf %s "$x$((x+1))${x}"`:        "565",
		`printf %s "${nothing:-$review}"`:         `looks "good"`,
		`for i in 1 2; do printf %s "$i$s"; done`: "1text2text",
	} {
		env := make(map[string]string)
		rewritten, _, problems := reference.ShellLine(env, line, lookup)
		if len(problems) > 0 {
			t.Errorf("%s: %q", line, problems)
			continue
		}
		cmd := exec.Command(sh, "-c", rewritten)
		cmd.Env = []string{"HOME=/nowhere"}
		for k, v := range env {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != want {
			t.Errorf("%s: %v\n%s, want\n%s", line, err, out, want)
		}
	}
}

// FuzzShellLine checks that the rewritten line has no byte of a value in it.
func FuzzShellLine(f *testing.F) {
	for _, s := range []string{`echo "$s" '$s' $(echo $s) ${s}`, "cat <<E\n$s\nE\n", "`'$s'`", `$'\'$s'`, `"${x:-$s}"`, "$((1<<$n))", `# $s`} {
		f.Add(s)
	}
	const secret = "\x01;rm\x01"
	f.Fuzz(func(t *testing.T, line string) {
		if strings.Contains(line, "\x01") || strings.Contains(line, "SENTINEL_") {
			return
		}
		value, _ := json.Marshal(secret)
		env := make(map[string]string)
		out, _, _ := reference.ShellLine(env, line, func(name string) (json.RawMessage, bool) { return value, name == "s" })
		if strings.Contains(out, "\x01") {
			t.Fatalf("%q became %q", line, out)
		}
		for name, text := range env {
			if !strings.Contains(out, "${"+name+"}") || text != secret {
				t.Fatalf("%q became %q with %q", line, out, env)
			}
			out = strings.ReplaceAll(out, "${"+name+"}", "$s")
		}
		if len(env) <= 1 && out != line {
			t.Fatalf("%q came back as %q", line, out)
		}
	})
}

// TestProgramOfQuotedReference: a reference in an argument in single quotes belongs to the program
// before the quote, whatever the argument contains.
func TestProgramOfQuotedReference(t *testing.T) {
	for line, want := range map[string]string{
		`curl -d '{"a": "$n"}' http://a`:            "curl",
		"curl -sS \\\n  -H 'A: b' -d '{\"a\": $n}'": "curl",
		`x=1; jq -r 'map(.a); $n' < a`:              "jq",
		`echo "a" 'b; c|d $n'`:                      "echo",
		`cd a && awk '{print $n}'`:                  "awk",
	} {
		got := ""
		reference.EachInShellLine(line, func(ref reference.Reference, quoted bool, program string, at int) {
			if ref.Name == "n" && quoted {
				got = program
			}
			if !strings.HasPrefix(line[at:], ref.String()) {
				t.Errorf("%s: %s is not at %d", line, ref, at)
			}
		})
		if got != want {
			t.Errorf("%s: program %q, want %q", line, got, want)
		}
	}
}
