package llm

import (
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/sdk"
)

func shellKind(t testing.TB, arguments string) kind {
	t.Helper()
	v, err := sdk.Parse(arguments)
	if err != nil {
		t.Fatal(err)
	}
	return kindOf(shellCommand, v)
}

func lineKind(line string) kind {
	return kindOf(shellCommand, sdk.Object(sdk.F("command", sdk.String(line))))
}

// TestKind checks what one approval covers. An empty kind is that of the call alone.
func TestKind(t *testing.T) {
	for line, want := range map[string]string{
		"go test ./...":                     "go test",
		"  go   test -run 'A|B;C' ./x ":     "go test",
		"npm run build":                     "npm run build",
		"npm run test:unit":                 "npm run test:unit",
		"go test -count=1 -v ./...":         "go test",
		"git log -20 --oneline":             "git log",
		"make -j4 test":                     "",
		`git commit -m "Repair it; really"`: "git commit",
		"make test -j4":                     "make test",

		// Options that write files or start programs.
		"npm run test:unit -- --watch=no": "", "make test CC=gcc": "", "make test --eval=x": "", "git log --output=a": "", `git log "--output=a"`: "", "git grep -Osh x": "",
		"git fetch --upload-pack=x origin": "", "git rebase -x y": "", "go test -exec x": "", "go vet -vettool=x ./...": "", "cargo test --config x": "", "go build -o x ./y": "",
		"sort text -o x": "", "./scripts/check fast -x": "",

		// What is sent, replaced or brought in.
		"git push origin main": "", "git push origin main :production": "", "git push": "", "git push origin ':production'": "",
		"git fetch origin main +main": "", "git fetch origin main +x:y": "", "git fetch origin main ':production'": "",
		"git fetch origin git@host:x": "", "git pull origin https://host/x": "", "npm install x": "", "npm i x": "", "go get x": "",
		"go install ./x": "", "cargo add x": "", "npm publish": "", "git remote add x y": "", "cargo build a@1": "",
		"./check fast A=1": "", "git fetch -m a:b": "", "git tag -m 'fix: x'": "", `git commit -m "fix: a@b += 1"`: "git commit",
		"git commit --message 'fix: x' -- a.txt": "", "git commit -m -m --x": "", "git commit --author -m --x": "",
		"git commit -q -m a:b": "", "git commit -m 'fix: x' a.txt": "git commit", "git commit -m x 'a:b'": "",
		"git fetch origin main": "", "git fetch origin main:production": "",

		// What is replaced, deleted, merged or released.
		"gh pr merge 12": "", "git update-ref refs/heads/x HEAD": "", "git checkout ./a.txt": "", "git checkout .": "", "git restore a.txt": "", "git merge fix/a": "",
		"git worktree remove ./x": "", "git reset HEAD": "", "git branch x": "", "git stash drop": "", "git commit --amend": "", "git apply ./x": "", "make ./other": "", "make test ./other": "",
		"npm link ./x": "", "yarn up": "", "cargo publish": "", "go generate ./...": "", "go mod tidy": "", "./scripts/check fast": "", "terraform apply": "", "helm uninstall x": "",

		"make": "", "ls -la": "", "cat a.txt": "", "python script": "", "npm run": "", "go run ./x": "", "cargo run": "", "yarn dlx": "",
		"rm build": "", "/bin/rm build": "", "RM build": "", "sudo go test": "", "env go test": "", "bash script": "", "git config user": "",
		"A=1 go test": "", "go test; rm x": "", "go test && rm x": "", "go test | tee x": "", "go test $(rm x)": "", "go test `rm x`": "",
		"go test > x": "", "go test < x": "", "go test\nrm x": "", "go test & rm x": "", "go test \\\nx": "", "go test # x": "", "go test *": "",
		"go test ~": "", "go test {a,b}": "", "(go test)": "", "go test !x": "", `go test "$x"`: "", "go test 'x": "", "'go' test": "",
		"go test \x00": "", "go test\tx": "", "gö test": "", "-x test": "", "": "", " ": "",
	} {
		k := lineKind(line)
		if k.one != (want == "") || !k.one && k.text != want {
			t.Errorf("%q: %+v, want %q", line, k, want)
		}
	}
	for arguments, want := range map[string]string{
		`{"argv":["go","test","./..."]}`:           "go test",
		`{"argv":["go","test","; rm x","$(x)\n"]}`: "go test", // no shell reads it
		`{"command":"go","args":["test","a b"]}`:   "go test",
		`{"command":"go test","cwd":".","env":null,"argv":[],"rules":[{"pattern":"x","classification":"error"}],"wait":false,"timeoutMs":5}`: "go test",

		`{"command":"go test","env":{"GOFLAGS":"-exec=x"}}`: "", `{"command":"go test","stdin":"x"}`: "", `{"argv":["sh","-c","x"]}`: "",
		`{"argv":["go test","x"]}`: "", `{"argv":"go test"}`: "", `{"argv":["go",1]}`: "", `{"command":["go","test"]}`: "", `{"command":7}`: "",
		`{"args":["go","test"]}`: "", `{"command":"go test","argv":["rm","x"]}`: "", `{"command":"go test","other":1}`: "", `{}`: "", `"go test"`: "", `[]`: "",
	} {
		k := shellKind(t, arguments)
		if k.one != (want == "") || !k.one && k.text != want {
			t.Errorf("%s: %+v, want %q", arguments, k, want)
		}
	}
	if a, b := shellKind(t, `{"argv":["go","test"]}`), lineKind("go test -v"); a != b {
		t.Errorf("%+v and %+v", a, b)
	}
	// The folder decides what a program reads.
	here := lineKind("git status")
	for _, arguments := range []string{`{"command":"git status","cwd":""}`, `{"command":"git status","workdir":"./"}`} {
		if k := shellKind(t, arguments); k != here {
			t.Errorf("%s: %+v, want %+v", arguments, k, here)
		}
	}
	kinds := map[string]string{here.key: "the workspace"}
	for _, name := range []string{"cwd", "workingDir", "workdir"} {
		k := shellKind(t, `{"command":"git status","`+name+`":"x-`+name+`"}`)
		if k.one || k.text != "git status (in x-"+name+")" || kinds[k.key] != "" {
			t.Errorf("%s: %+v, like %q", name, k, kinds[k.key])
		}
		kinds[k.key] = name
	}
	for _, folder := range []string{"a b", "x) (in y", "\u202e", strings.Repeat("x", maxKind)} {
		if k := shellKind(t, `{"command":"git status","cwd":"`+folder+`"}`); !k.one {
			t.Errorf("%q: %+v", folder, k)
		}
	}
	for _, arguments := range []string{`{"command":"git status","cwd":["x"]}`, `{"command":"git status","cwd":".","workdir":"x"}`} {
		if k := shellKind(t, arguments); !k.one {
			t.Errorf("%s: %+v", arguments, k)
		}
	}
	if a, b := lineKind("rm a"), lineKind("rm b"); a.key == b.key {
		t.Errorf("the same kind: %+v", a)
	}
	if k := kindOf("code/edit", sdk.Object()); k.one || k.key == "" {
		t.Errorf("%+v", k)
	}
}

// FuzzKind checks of any line that nothing which a shell reads can be appended within the
// kind of the line, and that a kind is the beginning of the line.
func FuzzKind(f *testing.F) {
	for _, line := range []string{"go test ./...", `git commit -m "a b"`, "npm run build -- --x='y z'", "A=1 x", "go test '", "rm -rf x", "echo a\tb", "é x"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		k := lineKind(line)
		for _, more := range []string{";x", "&&x", "|x", "\nx", "$(x)", "`x`", ">x", "<x", "&", "$x", "\\", "{a,b}", "#", "(x)", "*"} {
			if with := lineKind(line + more); !with.one {
				t.Errorf("%q is of the kind %q", line+more, with.text)
			}
		}
		if k.one {
			return
		}
		if fields := strings.Fields(line); !strings.HasPrefix(strings.Join(fields, " "), k.text) {
			t.Errorf("%q is of the kind %q", line, k.text)
		}
		if again := lineKind(k.text + " -q"); !again.one && again != k {
			t.Errorf("%+v, and of its own text %+v", k, again)
		}
		if alone := lineKind("A=1 " + line); !alone.one {
			t.Errorf("an assignment is of the kind %q", alone.text)
		}
	})
}
