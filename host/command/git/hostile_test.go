//go:build unix

package git_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// operations are every operation, with parameters that let it do its work.
var operations = []params{
	{"operation": "status"}, {"operation": "diff"}, {"operation": "diff", "staged": true}, {"operation": "log"}, {"operation": "log", "format": "%h %d %s"}, {"operation": "log", "format": "fuller"}, {"operation": "show"},
	{"operation": "add", "paths": []string{"."}}, {"operation": "commit", "message": "m"}, {"operation": "push"}, {"operation": "fetch"}, {"operation": "pull"},
	{"operation": "branch", "branch": "made"}, {"operation": "checkout", "branch": "made"}, {"operation": "checkout", "branch": "new", "create": true},
	{"operation": "checkout", "paths": []string{"a.txt"}}, {"operation": "init"},
}

// TestHostileRepositoriesRunNothing plants a program in every place of a
// repository that git would run one from, then does everything.
func TestHostileRepositoriesRunNothing(t *testing.T) {
	b := newBench(t)
	canary := filepath.Join(commandDir(t), "canary")
	evil := filepath.Join(commandDir(t), "evil.sh")
	if err := os.WriteFile(evil, []byte("#!/bin/sh\ntouch "+canary+"\ncat\nexit 0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	config := func(pairs ...string) func(string) {
		return func(string) {
			for i := 0; i < len(pairs); i += 2 {
				b.raw(b.dir, "config", pairs[i], pairs[i+1])
			}
		}
	}
	attributes := func(text string, pairs ...string) func(string) {
		return func(bare string) {
			b.put(".gitattributes", text)
			config(pairs...)(bare)
		}
	}
	cases := map[string]func(bare string){
		"hooks": func(bare string) {
			for _, dir := range []string{filepath.Join(b.dir, ".git", "hooks"), filepath.Join(bare, "hooks")} {
				for _, h := range strings.Fields("pre-commit commit-msg prepare-commit-msg post-commit pre-push post-checkout post-merge post-rewrite pre-merge-commit reference-transaction post-index-change pre-auto-gc fsmonitor-watchman pre-receive update post-receive post-update proc-receive push-to-checkout") {
					if err := os.MkdirAll(dir, 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.Symlink(evil, filepath.Join(dir, h)); err != nil {
						t.Fatal(err)
					}
				}
			}
		},
		"second push URL": func(bare string) {
			b.raw(b.dir, "config", "remote.origin.url", "https://127.0.0.1:9/x")
			b.raw(b.dir, "config", "--add", "remote.origin.url", bare)
			if err := os.Symlink(evil, filepath.Join(bare, "hooks", "pre-receive")); err != nil {
				t.Fatal(err)
			}
		},
		"hooksPath": func(string) {
			b.put("h/pre-commit", "#!/bin/sh\ntouch "+canary)
			b.put("h/post-checkout", "#!/bin/sh\ntouch "+canary)
			b.put("h/post-index-change", "#!/bin/sh\ntouch "+canary)
			b.raw(b.dir, "config", "core.hooksPath", "h")
		},
		"hooks of the settings":   config("hook.x.command", evil, "hook.x.event", "post-commit", "hook.y.command", evil, "hook.y.event", "post-index-change", "hook.z.command", evil, "hook.z.event", "reference-transaction"),
		"fsmonitor":               config("core.fsmonitor", evil),
		"pager":                   config("core.pager", evil, "pager.log", evil, "pager.diff", "true", "pager.status", evil),
		"editor":                  config("core.editor", evil, "sequence.editor", evil),
		"sshCommand":              config("core.sshCommand", evil, "remote.origin.url", "ssh://127.0.0.1:9/x"),
		"askPass":                 config("core.askPass", evil, "remote.origin.url", "https://127.0.0.1:9/x"),
		"gitProxy":                config("core.gitProxy", evil, "remote.origin.url", "git://127.0.0.1:9/x"),
		"alternateRefs":           config("core.alternateRefsCommand", evil),
		"credential":              config("credential.helper", "!"+evil, "remote.origin.url", "https://127.0.0.1:9/x"),
		"credential of a URL":     config("credential.https://127.0.0.1:9.helper", "!"+evil, "remote.origin.url", "https://127.0.0.1:9/x"),
		"uploadpack":              config("remote.origin.uploadpack", evil),
		"receivepack":             config("remote.origin.receivepack", evil),
		"vcs":                     config("remote.origin.vcs", "ext", "remote.origin.url", "ext::"+evil, "protocol.ext.allow", "always"),
		"ext URL":                 config("remote.origin.url", "ext::"+evil, "protocol.ext.allow", "always", "protocol.allow", "always"),
		"ext by insteadOf":        config("url.ext::"+evil+" .insteadOf", "https://x/", "remote.origin.url", "https://x/", "protocol.ext.allow", "always"),
		"fd URL":                  config("remote.origin.url", "fd::0,1", "protocol.fd.allow", "always"),
		"URL as an option":        config("remote.origin.url", "--upload-pack="+evil),
		"ssh host as an option":   config("remote.origin.url", "ssh://-oProxyCommand="+evil+"/x"),
		"external diff":           config("diff.external", evil),
		"diff driver":             attributes("* diff=evil\n", "diff.evil.command", evil, "diff.evil.textconv", evil),
		"filter clean and smudge": attributes("* filter=evil\n", "filter.evil.clean", evil, "filter.evil.smudge", evil),
		"filter process":          attributes("* filter=evil\n", "filter.evil.process", evil, "filter.evil.required", "true"),
		"merge driver":            attributes("* merge=evil\n", "merge.evil.driver", evil),
		"gpg":                     config("gpg.Program", evil, "commit.gpgSign", "true", "user.signingKey", "x", "log.showSignature", "true", "push.gpgSign", "true"),
		"ssh signing":             config("gpg.format", "ssh", "gpg.ssh.program", evil, "gpg.ssh.defaultKeyCommand", evil, "commit.gpgSign", "true"),
		"alias":                   config("alias.status", "!"+evil, "alias.diff", "!"+evil, "alias.commit", "!"+evil),
		"submodule update":        config("submodule.x.update", "!"+evil, "submodule.recurse", "true"),
		"template":                config("init.templateDir", b.dir, "commit.template", "/dev/zero"),
		"packObjectsHook":         config("uploadpack.packObjectsHook", evil),
		"trailer command":         config("trailer.x.command", evil, "trailer.x.ifmissing", "add"),
		"lfs transfer":            config("lfs.customtransfer.x.path", evil, "lfs.standalonetransferagent", "x"),
		"promisor":                config("extensions.partialClone", "origin", "remote.origin.promisor", "true", "core.repositoryFormatVersion", "1"),
		"include": func(string) {
			b.put("more.config", fmt.Sprintf("[filter \"evil\"]\n\tclean = %q\n\tsmudge = %q\n[core]\n\tfsmonitor = %q\n", evil, evil, evil))
			b.put(".gitattributes", "* filter=evil\n")
			b.raw(b.dir, "config", "include.path", "../more.config")
		},
		"worktree configuration": func(string) {
			b.put(".gitattributes", "* filter=evil\n")
			b.raw(b.dir, "config", "extensions.worktreeConfig", "true")
			b.raw(b.dir, "config", "--worktree", "filter.evil.clean", evil)
		},
		"program named git in the workspace": func(string) {
			for _, name := range []string{"git", "ssh", "sh", "false", "git-receive-pack", "git-upload-pack", "cat"} {
				b.put(name, "#!/bin/sh\ntouch "+canary)
			}
			t.Setenv("PATH", ".::"+os.Getenv("PATH"))
		},
		"submodule with a monitor": func(string) {
			sub := filepath.Join(b.dir, "sub")
			b.raw(b.dir, "init", "-q", "sub")
			b.put("sub/x.txt", "x\n")
			b.raw(sub, "add", "x.txt")
			b.raw(sub, "commit", "-q", "-m", "x")
			b.raw(b.dir, "-c", "advice.addEmbeddedRepo=false", "add", "sub")
			b.raw(b.dir, "commit", "-q", "-m", "sub")
			b.raw(sub, "config", "core.fsmonitor", evil)
			b.raw(sub, "config", "filter.evil.clean", evil)
			b.put("sub/.gitattributes", "* filter=evil\n")
			b.put("sub/x.txt", "y\n") // which git can compare through the filter only
			b.put(".gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n")
		},
		"bare repository inside": func(string) {
			b.put("HEAD", "ref: refs/heads/main\n")
			b.put("config", fmt.Sprintf("[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = %q\n", evil))
			b.put("objects/x", "")
			b.put("refs/x", "")
		},
	}
	if testing.Short() {
		// Of each way to a program one case: hooks, settings of the repository, attributes, helpers of a
		// remote, its URL, an included file, a submodule and the search path.
		short := []string{
			"hooks", "hooksPath", "fsmonitor", "sshCommand", "ext by insteadOf", "diff driver", "filter process", "gpg", "include", "program named git in the workspace", "submodule with a monitor",
		}
		maps.DeleteFunc(cases, func(name string, _ func(string)) bool { return !slices.Contains(short, name) })
	}
	// Each case has a copy of a repository and of the bare one it was pushed to.
	pushed := t.TempDir()
	b.dir = filepath.Join(pushed, "work")
	if err := os.Mkdir(b.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	b.repo()
	b.raw(b.dir, "init", "-q", "--bare", filepath.Join(pushed, "bare.git"))
	b.raw(b.dir, "remote", "add", "origin", filepath.Join(pushed, "bare.git"))
	b.raw(b.dir, "push", "-q", "-u", "origin", "main")
	ran := 0
	for name, plant := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(pushed)); err != nil {
				t.Fatal(err)
			}
			bare := filepath.Join(dir, "bare.git")
			b.t, b.dir = t, filepath.Join(dir, "work")
			b.raw(b.dir, "config", "remote.origin.url", bare)
			plant(bare)
			b.put("a.txt", "changed\n")
			b.put("b.txt", "new\n")
			worked := 0
			for _, p := range operations {
				if _, err := b.try(p); err == nil {
					worked++
				} else if c := abi.CodeOf(err); c == abi.Timeout {
					t.Errorf("%v: %v", p, err)
				}
				if _, err := os.Stat(canary); err == nil {
					t.Fatalf("%v ran the program", p)
				}
			}
			ran++
			t.Logf("%d of %d operations worked", worked, len(operations))
		})
	}
	if want := map[bool]int{true: 11, false: 30}[testing.Short()]; ran < want {
		t.Errorf("only %d repositories were tried", ran)
	}
}

// commandDir returns a folder whose path a shell takes as one word. The configured
// programs are shell lines, so a path with a space would make them harmless and the
// tests above would pass for nothing.
func commandDir(t *testing.T) string {
	t.Helper()
	if dir := t.TempDir(); !strings.ContainsAny(dir, " '\"$[]*?") {
		return dir
	}
	dir, err := os.MkdirTemp("/tmp", "canary-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// TestPlantedProgramsWouldRun shows that the canary of the test above is real:
// plain git does run it.
func TestPlantedProgramsWouldRun(t *testing.T) {
	b := newBench(t)
	b.repo()
	canary := filepath.Join(commandDir(t), "canary")
	b.raw(b.dir, "config", "core.fsmonitor", "touch "+canary+";")
	b.raw(b.dir, "status")
	if _, err := os.Stat(canary); err != nil {
		t.Errorf("git did not run the monitor: %v", err)
	}
}

func TestOrdinaryRepositoriesWork(t *testing.T) {
	b := newBench(t)
	b.repo()
	// What husky, git-lfs and an editor leave behind.
	b.raw(b.dir, "config", "core.hooksPath", ".husky")
	b.raw(b.dir, "config", "core.fsmonitor", "true")
	b.raw(b.dir, "config", "filter.lfs.clean", "git-lfs clean -- %f")
	b.raw(b.dir, "config", "filter.lfs.process", "git-lfs filter-process")
	b.put("a.txt", "x\n")
	if r := b.do(params{"operation": "commit", "message": "m", "all": true}); !*r.Committed {
		t.Errorf("got %+v", r)
	}
	b.raw(b.dir, "config", "filter.mine.clean", "sed s/a/b/")
	_, err := b.try(params{"operation": "status"})
	if e := abi.As(err); e == nil || e.Code != abi.Denied || !strings.Contains(e.Message, "filter.mine.clean") || !strings.Contains(e.Hint, "--global") {
		t.Errorf("got %+v", e)
	}
}

// TestPipesAreRefused: git would wait for a pipe in place of a file that it reads in each folder.
func TestPipesAreRefused(t *testing.T) {
	b := newBench(t)
	b.repo()
	if err := syscall.Mkfifo(filepath.Join(b.dir, ".gitignore"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.put("a.txt", "other\n")
	for _, op := range []string{"status", "add"} {
		if _, err := b.try(params{"operation": op, "paths": []string{"."}}); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "is a pipe") {
			t.Errorf("%s: %v", op, err)
		}
	}
}
