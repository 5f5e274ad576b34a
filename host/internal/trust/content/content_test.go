package content_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/host/internal/trust/content"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

const (
	build = "sentinels/build.json"
	other = "sentinels/other.json"
)

// project is a workspace with a .sentinel folder.
type project struct {
	t    *testing.T
	dir  string // .sentinel
	opt  content.Options
	work string
}

func newProject(t *testing.T) *project {
	t.Helper()
	work := t.TempDir()
	return &project{t, filepath.Join(work, ".sentinel"), content.Options{Records: filepath.Join(t.TempDir(), "trusted"), Git: gitexec.LookPath()}, work}
}

func (p *project) folder() *content.Folder { return content.Open(p.dir, p.work, p.opt) }

func (p *project) write(key, text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, key)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// check asks about a file as it is, and wants an answer.
func (p *project) check(key string, trusted bool) {
	p.t.Helper()
	path := filepath.Join(p.dir, key)
	text, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	err = p.folder().Check(path, text)
	switch {
	case trusted && err != nil:
		p.t.Errorf("%s: %v", key, err)
	case !trusted && abi.CodeOf(err) != abi.Denied:
		p.t.Errorf("%s is trusted (error %v)", key, err)
	}
}

func (p *project) approve() {
	p.t.Helper()
	items, err := p.folder().Pending()
	if err == nil {
		err = p.folder().Approve(items)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *project) git(args ...string) {
	p.t.Helper()
	p.gitOutput(args...)
}

func (p *project) gitOutput(args ...string) string {
	p.t.Helper()
	if p.opt.Git == "" {
		p.t.Skip("git is not installed")
	}
	cmd := exec.Command(p.opt.Git, args...)
	cmd.Dir = p.work
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestUnknownFolder: what is in a folder at the first look does not count, also after an
// edit of it, until it is trusted.
func TestUnknownFolder(t *testing.T) {
	p := newProject(t)
	p.write(build, "one")
	p.write(other, "two")
	p.check(build, false)
	if err := p.folder().Begin(); err != nil { // a verb writes something else there
		t.Fatal(err)
	}
	p.write(build, "one, edited")
	p.check(build, false)
	p.write("sentinels/own.json", "own")
	p.check("sentinels/own.json", true)
	p.check(other, false)
	p.approve()
	p.check(build, true)
	p.check(other, true)
}

// TestEditsCount: in a folder that was trusted, edits and new files of the user count.
func TestEditsCount(t *testing.T) {
	p := newProject(t)
	p.write(build, "one")
	p.approve()
	p.write(build, "two")
	p.check(build, true)
	p.write("recipes/new.json", "[]")
	p.check("recipes/new.json", true)
	if gone, err := p.folder().Revoke(); !gone || err != nil {
		t.Fatal(gone, err)
	}
	p.check(build, false)
}

// TestPullIsHeld: what git writes into a trusted folder does not count until it is
// trusted, and what the user tried before committing it does.
func TestPullIsHeld(t *testing.T) {
	for name, attributes := range map[string]string{
		"plain": "", "crlf": "*.json text eol=crlf\n", "ident": "*.json ident\n", "filter": "*.json filter=lfs\n", "encoding": "*.json working-tree-encoding=ISO-8859-1\n",
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			p.git("init", "-q", "-b", "main")
			p.write(build, "{\"a\": \"$Id$\"}\n")
			if attributes != "" {
				if err := os.WriteFile(filepath.Join(p.work, ".gitattributes"), []byte(attributes), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			p.git("add", "-A")
			p.git("commit", "-qm", "one")
			if err := os.Remove(filepath.Join(p.dir, build)); err != nil {
				t.Fatal(err)
			}
			p.git("checkout", "-q", "--", ".") // as a clone has it
			p.approve()

			// Another person's commit arrives.
			p.git("checkout", "-q", "-b", "theirs")
			p.write(build, "{\"a\": \"$Id$\", \"b\": \"theirs\"}\n")
			p.write(other, "{\"new\": true}\n")
			p.git("add", "-A")
			p.git("commit", "-qm", "two")
			p.git("checkout", "-q", "main")
			p.check(build, true)
			p.git("merge", "-q", "theirs")
			p.check(build, false)
			p.check(other, false)
			items, err := p.folder().Pending()
			if err != nil || len(items) != 2 || !items[0].Changed || items[0].Before == nil || items[1].Changed {
				t.Fatalf("pending: %+v, %v", items, err)
			}
			p.write(build, "{\"a\": \"edited on top\"}\n")
			p.check(build, false)
			p.approve()
			p.check(build, true)
			p.check(other, true)
		})
	}
}

// TestPullOfOtherObjects: an attribute can have git write the same text for objects that cannot
// be computed from it.
func TestPullOfOtherObjects(t *testing.T) {
	for name, c := range map[string]struct{ attributes, object string }{
		"mixed line ends of a text": {"*.json text eol=crlf\n", "{\r\n\"a\": 1,\n\"b\": 2}\n"},
		"line ends by eol":          {"*.json eol=crlf\n", "{\r\n\"a\": 1,\n\"b\": 2}\n"},
		"mixed line ends of auto":   {"*.json text=auto eol=crlf\n", "{\r\n\"a\": 1,\n\"b\": 2}\n"},
		"expanded ident":            {"*.json ident\n", "{\"a\": \"$Id: other $\"}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			p.git("init", "-q", "-b", "main")
			p.write(build, "{}\n")
			if err := os.WriteFile(filepath.Join(p.work, ".gitattributes"), []byte(c.attributes), 0o644); err != nil {
				t.Fatal(err)
			}
			p.git("add", "-A")
			p.git("commit", "-qm", "one")
			p.approve()

			// A commit with an object that add would not make.
			object := filepath.Join(t.TempDir(), "object")
			if err := os.WriteFile(object, []byte(c.object), 0o644); err != nil {
				t.Fatal(err)
			}
			name := strings.TrimSpace(p.gitOutput("hash-object", "-w", "--no-filters", object))
			p.git("checkout", "-q", "-b", "theirs")
			p.git("update-index", "--cacheinfo", "100644,"+name+",.sentinel/"+build)
			p.git("commit", "-qm", "two")
			p.git("checkout", "-qf", "main")
			p.git("merge", "-q", "theirs")
			p.check(build, false)
		})
	}
}

// stage adds a file to the index with these bytes as its object, past all attributes.
func (p *project) stage(path, text string) {
	p.t.Helper()
	object := filepath.Join(p.t.TempDir(), "object")
	if err := os.WriteFile(object, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
	p.git("update-index", "--add", "--cacheinfo", "100644,"+strings.TrimSpace(p.gitOutput("hash-object", "-w", "--no-filters", object))+","+path)
}

// TestConvertedPull: one pull can bring content that no attribute of the work tree explains. git
// takes the attributes from the index, writes .gitattributes itself in another encoding, and
// executes filters that the user has.
func TestConvertedPull(t *testing.T) {
	const ident = "{\"a\": \"$Id$\"}\n"
	for name, c := range map[string]struct{ attributes, file string }{
		"ident, attributes in UTF-16":    {"*.json ident\n.gitattributes working-tree-encoding=UTF-16LE-BOM\n", ident},
		"line ends, attributes in UTF-7": {"*.json text eol=crlf\n.gitattributes working-tree-encoding=UTF-7\n", "{\r\n\"a\": 1,\n\"b\": 2}\n"},
		"encoding":                       {"*.json working-tree-encoding=UTF-16LE-BOM\n.gitattributes working-tree-encoding=UTF-16LE-BOM\n", ident},
		"filter of the user":             {"*.json filter=user\n.gitattributes working-tree-encoding=UTF-16LE-BOM\n", ident},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			p.git("init", "-q", "-b", "main")
			p.git("config", "filter.user.smudge", "tr a b")
			p.git("config", "filter.user.clean", "tr b a")
			p.write("recipes/r.json", "[]\n")
			p.git("add", "-A")
			p.git("commit", "-qm", "one")
			p.approve()
			p.git("checkout", "-q", "-b", "theirs")
			p.stage(".gitattributes", c.attributes)
			p.stage(".sentinel/"+build, c.file)
			p.git("commit", "-qm", "two")
			p.git("checkout", "-qf", "main")
			p.git("merge", "-q", "theirs")
			p.check(build, false)
			p.approve()
			p.check(build, true)
		})
	}
}

// TestConversionOfTrustedContent: a pull that changes no content has git write a file again, and convert it. The text in the
// comment of a harmless definition becomes code: in Shift JIS the yen sign is a backslash.
func TestConversionOfTrustedContent(t *testing.T) {
	const text = "{\"description\": \"5 \u00a5\", /* \", \"steps\": [\"theirs\"]} // */ \"steps\": []} // $Id$\n"
	for name, c := range map[string]struct{ file, text, attribute string }{
		"encoding": {build, text, "working-tree-encoding=SHIFT_JIS"},
		"ident":    {build, text, "ident"},
		"filter":   {build, text, "filter=user"},
		"line end": {"plugins/p.wasm", "\x00asm\r\n\n", "text eol=crlf"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			p.git("init", "-q", "-b", "main")
			p.git("config", "filter.user.smudge", "tr e a")
			p.write(c.file, c.text)
			p.git("add", "-A")
			p.git("commit", "-qm", "one")
			p.approve()
			blob := strings.TrimSpace(p.gitOutput("rev-parse", "HEAD:.sentinel/"+c.file))
			p.git("checkout", "-q", "-b", "theirs")
			p.stage(".gitattributes", filepath.Base(c.file)+" "+c.attribute+"\n")
			p.git("update-index", "--cacheinfo", "100755,"+blob+",.sentinel/"+c.file)
			p.git("commit", "-qm", "two: another mode")
			p.git("rm", "-q", "--cached", ".gitattributes")
			p.git("commit", "-qm", "three: without the attribute")
			p.git("checkout", "-qf", "main")
			p.check(c.file, true)

			// Each judges with the records of before the pull.
			unjudged := func() *project {
				q := *p
				q.opt.Records = filepath.Join(t.TempDir(), "trusted")
				if err := os.CopyFS(q.opt.Records, os.DirFS(p.opt.Records)); err != nil {
					t.Fatal(err)
				}
				return &q
			}
			pulled, pulledTwice, edited := unjudged(), unjudged(), unjudged()
			read, reset := unjudged(), unjudged()
			p.git("merge", "-q", "theirs~1")
			now, err := os.ReadFile(filepath.Join(p.dir, c.file))
			if err != nil || string(now) == c.text {
				t.Fatalf("git has not converted the file: %q, %v", now, err)
			}
			pulled.check(c.file, false)
			p.git("merge", "-q", "theirs")
			pulledTwice.check(c.file, false)
			if c.file != build {
				return // an edit of a module is a new one
			}
			// These write the index again, without the time of the file.
			p.git("read-tree", "HEAD")
			read.check(c.file, false)
			p.git("rm", "-q", "--cached", ".sentinel/"+c.file)
			p.git("reset", "-q")
			reset.check(c.file, false)
			p.git("reset", "-q", "--soft", "theirs~1")
			p.git("reset", "-q", "--", ".gitattributes")
			p.write(c.file, string(now)+" ")
			edited.check(c.file, false)
			edited.approve()
			edited.check(c.file, true)
		})
	}
}

// TestAttributesThatAreGone: a file that attributes converted is not written again by the commit
// that removes them.
func TestAttributesThatAreGone(t *testing.T) {
	p := newProject(t)
	p.git("init", "-q", "-b", "main")
	p.write("recipes/r.json", "[]\n")
	p.git("add", "-A")
	p.git("commit", "-qm", "one")
	p.approve()
	p.git("checkout", "-q", "-b", "theirs")
	p.stage(".gitattributes", "*.json ident\n")
	p.stage(".sentinel/"+build, "{\"a\": \"$Id$\"}\n")
	p.git("commit", "-qm", "two")
	p.git("rm", "-q", "--cached", ".gitattributes")
	p.git("commit", "-qm", "three")
	p.git("checkout", "-qf", "main")
	p.git("merge", "-q", "theirs~1")
	p.git("merge", "-q", "theirs")
	p.check(build, false)
}

// TestEditOfTrackedFile: an edit counts while the index has content that counts, by any name of
// the file, and not once the index has other content.
func TestEditOfTrackedFile(t *testing.T) {
	p := newProject(t)
	p.git("init", "-q", "-b", "main")
	p.write(build, "{\"a\": 1}\n")
	p.git("add", "-A")
	p.git("commit", "-qm", "one")
	p.approve()
	p.write(build, "{\"a\": 2}\r\n")
	p.check(build, true)
	p.write(build, "{\"a\": 3}\n")
	lock := filepath.Join(p.work, ".git", "index.lock")
	if err := os.WriteFile(lock, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	p.check(build, false) // a checkout may have written it
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	p.check(build, true)
	p.stage(".sentinel/Sentinels/BUILD.json", "{\"a\": 4}\n")
	p.write(build, "{\"a\": 5}\n")
	p.check(build, false)
}

// TestEditThatWasUnstaged: an edit counts behind a command that writes the index without the time of the file, unless a commit has
// had git convert files.
func TestEditThatWasUnstaged(t *testing.T) {
	p := newProject(t)
	p.git("init", "-q", "-b", "main")
	p.write(build, "{\"a\": 1}\n")
	if err := os.WriteFile(filepath.Join(p.work, ".gitattributes"), []byte("*.json text eol=lf\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p.git("add", "-A")
	p.git("commit", "-qm", "one")
	p.approve()
	p.write(build, "{\"a\": 2}\n")
	p.git("add", "-A")
	p.git("reset", "-q")
	p.write(build, "{\"a\": 3}\n")
	p.check(build, true)
	p.stage(".gitattributes", "*.png filter=lfs\n")
	p.git("commit", "-qm", "two")
	p.write(build, "{\"a\": 4}\n")
	p.git("read-tree", "HEAD")
	p.check(build, false)
	p.approve()
	p.check(build, true)
}

// TestLinkToAnotherProject: a project whose folder is a link to that of a trusted one is not
// trusted with it.
func TestLinkToAnotherProject(t *testing.T) {
	p := newProject(t)
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := p.folder().Begin(); err != nil {
		t.Fatal(err)
	}
	p.write("../.continuum/sentinels/mine.json", "mine")
	p.check("../.continuum/sentinels/mine.json", true)

	foreign := &project{t, filepath.Join(t.TempDir(), ".sentinel"), p.opt, ""}
	foreign.work = filepath.Dir(foreign.dir)
	if err := os.Symlink(p.dir, foreign.dir); err != nil {
		t.Fatal(err)
	}
	// Its steps would execute files of the foreign project.
	p.write(build, "mine")
	p.check(build, true)
	foreign.check(build, false)
	for _, root := range []string{p.work, p.dir} {
		withRoot := *foreign
		withRoot.opt.Roots = []string{root}
		withRoot.check(build, false)
	}

	evil := filepath.Join(foreign.work, ".continuum", "sentinels", "mine.json")
	for _, text := range []string{"mine", "theirs"} {
		if err := foreign.folder().Check(evil, []byte(text)); abi.CodeOf(err) != abi.Denied {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := foreign.folder().Begin(); !errors.Is(err, content.ErrUntrusted) || !strings.Contains(err.Error(), p.dir) {
		t.Errorf("it would be written to: %v", err)
	}
	items, err := foreign.folder().Pending()
	if err != nil || len(items) == 0 || items[0].Kind != content.Link || !strings.Contains(string(items[0].Content), p.dir) {
		t.Fatalf("pending: %+v, %v", items, err)
	}
	// What it leads to was changed after the question.
	if err := errors.Join(os.Remove(foreign.dir), os.Symlink(t.TempDir(), foreign.dir)); err != nil {
		t.Fatal(err)
	}
	if err := foreign.folder().Approve(items); !errors.Is(err, content.ErrUntrusted) {
		t.Errorf("another link was trusted: %v", err)
	}
	if err := errors.Join(os.Remove(foreign.dir), os.Symlink(p.dir, foreign.dir)); err != nil {
		t.Fatal(err)
	}
	foreign.approve()
	foreign.check(build, true)
	if err := foreign.folder().Begin(); err != nil {
		t.Error(err)
	}
}

// TestPullIntoSubmodule: a folder was a submodule, and a commit of the repository around it has files in
// its place. Git writes them beside the .git of the submodule, which knows nothing of them.
func TestPullIntoSubmodule(t *testing.T) {
	for _, folder := range []string{".sentinel", ".sentinel/sentinels"} {
		t.Run(folder, func(t *testing.T) {
			sub := newProject(t)
			sub.git("init", "-q", "-b", "main")
			inSub := strings.TrimPrefix(".sentinel/"+build, folder+"/")
			sub.write("../"+inSub, "harmless")
			sub.git("add", "-A")
			sub.git("commit", "-qm", "one")

			p := newProject(t)
			p.git("init", "-q", "-b", "main")
			p.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", sub.work, folder)
			p.git("commit", "-qm", "one")
			p.approve()
			p.write("sentinels/own.json", "edited")
			p.check("sentinels/own.json", true)
			if err := os.Remove(filepath.Join(p.dir, "sentinels", "own.json")); err != nil {
				t.Fatal(err)
			}
			p.git("update-index", "--force-remove", folder)
			if folder == ".sentinel" {
				state := filepath.Join(p.dir, "state")
				if err := p.folder().CheckState(state); err != nil {
					t.Fatal(err)
				}
				p.write("state/store.db", "theirs")
				p.stage(".sentinel/state/store.db", "theirs")
				if err := p.folder().CheckTracked(state); abi.CodeOf(err) != abi.Denied {
					t.Errorf("a store that the repository around the former submodule tracks: %v", err)
				}
			}
			for _, name := range []string{build, "sentinels/fresh.json"} { // as it is after a pull
				p.stage(".sentinel/"+name, "theirs")
				p.write(name, "theirs")
				p.check(name, false)
			}
		})
	}
}

// TestOwnCommit: an edit that was seen before it was committed counts afterwards, on every
// branch.
func TestOwnCommit(t *testing.T) {
	p := newProject(t)
	p.git("init", "-q", "-b", "main")
	p.write(build, "one")
	p.git("add", "-A")
	p.git("commit", "-qm", "one")
	p.approve()
	p.write(build, "two")
	p.check(build, true) // a run, or a server that follows the file
	p.git("commit", "-qam", "two")
	p.check(build, true)
	p.git("checkout", "-q", "HEAD~1")
	p.check(build, true)
}

// TestRepositoryThatCannotBeAsked: without an answer of git, content counts as written by
// git.
func TestRepositoryThatCannotBeAsked(t *testing.T) {
	for name, git := range map[string]string{"no git": "", "git fails": "/bin/false"} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			p.write(build, "one")
			p.approve()
			if err := os.Mkdir(filepath.Join(p.work, ".git"), 0o755); err != nil {
				t.Fatal(err)
			}
			p.opt.Git = git
			p.write(build, "two")
			p.check(build, false)
		})
	}
}

// TestWrite: what a verb writes counts, also over held content, and nothing else by that.
func TestWrite(t *testing.T) {
	p := newProject(t)
	p.write(build, "theirs")
	p.write(other, "theirs")
	path := filepath.Join(p.dir, build)
	err := p.folder().Write(filepath.Dir(path), func() (string, error) { return filepath.Base(path), os.WriteFile(path, []byte("own"), 0o644) })
	if err != nil {
		t.Fatal(err)
	}
	p.check(build, true)
	p.check(other, false)
}

// TestEnvironmentFiles: a file of variables that git tracks is asked about once and again after a pull,
// and the user's own file, which git does not track, never.
func TestEnvironmentFiles(t *testing.T) {
	p := newProject(t)
	p.git("init", "-q", "-b", "main")
	p.write(build, `{"envFiles": [".env"], "steps": [{"type": "sentinel", "definition": {"envFiles": ["inner.env", "gone.env"]}}]}`)
	p.write("../.env", "A=1\n")
	p.git("add", "-A")
	p.git("commit", "-qm", "one")
	p.write("../inner.env", "B=mine\n")
	items, err := p.folder().Pending()
	if err != nil || len(items) != 2 || items[1].Kind != content.Environment || items[1].Path != filepath.Join(p.work, ".env") || string(items[1].Content) != "A=1\n" {
		t.Fatalf("pending: %+v, %v", items, err)
	}
	if err := p.checkEnvironment(p.work, ".env"); !errors.Is(err, content.ErrUntrusted) {
		t.Errorf("before it is trusted: %v", err)
	}
	p.approve()
	for range 2 {
		for _, own := range []string{".env", "inner.env"} {
			if err := p.checkEnvironment(p.work, own); err != nil {
				t.Errorf("%s: %v", own, err)
			}
		}
		p.write("../inner.env", "B=edited\n")
		p.write("../.env", "A=edited\n")
	}

	p.git("checkout", "-q", "--", ".env")
	p.git("checkout", "-q", "-b", "theirs")
	p.stage(".env", "GREETING=theirs\n")
	p.stage("other.env", "GREETING=theirs\n")
	p.git("commit", "-qm", "two")
	p.git("checkout", "-qf", "main")
	p.git("merge", "-q", "theirs")
	for _, theirs := range []string{".env", "other.env"} { // a stored definition may name the second one
		if err := p.checkEnvironment(p.work, theirs); !errors.Is(err, content.ErrUntrusted) {
			t.Errorf("%s after a pull: %v", theirs, err)
		}
	}
	items, err = p.folder().Pending()
	if err != nil || len(items) != 2 || !items[0].Changed || items[1].Changed || items[1].Path != filepath.Join(p.work, "other.env") {
		t.Fatalf("pending after a pull: %+v, %v", items, err)
	}
	p.approve()
	for _, theirs := range []string{".env", "other.env"} {
		if err := p.checkEnvironment(p.work, theirs); err != nil {
			t.Errorf("%s, trusted: %v", theirs, err)
		}
	}

	// A worktree of a ticket has the same files, and those of its branch.
	tree := filepath.Join(t.TempDir(), "tree")
	p.git("worktree", "add", "-q", tree, "-b", "work")
	if err := p.checkEnvironment(tree, ".env"); err != nil {
		t.Errorf("in a worktree: %v", err)
	}
	p.stage(".env", "GREETING=of a worker\n")
	p.git("commit", "-qm", "three")
	p.git("-C", tree, "merge", "-q", "main")
	if err := p.checkEnvironment(tree, ".env"); !errors.Is(err, content.ErrUntrusted) {
		t.Errorf("changed in a worktree: %v", err)
	}
	if kept, err := filepath.Glob(filepath.Join(p.opt.Records, "*", "*", "*")); err != nil || slices.ContainsFunc(kept, func(file string) bool {
		text, err := os.ReadFile(file)
		return err != nil || strings.Contains(string(text), "A=")
	}) {
		t.Errorf("a record has the text of an environment file: %v", err)
	}
}

// TestEnvironmentFileOfArchive: an environment file that was unpacked with the folder is asked about
// with its definitions.
func TestEnvironmentFileOfArchive(t *testing.T) {
	p := newProject(t)
	p.write(build, "{\"envFiles\": [\".env\"]} // theirs\n")
	if err := os.Rename(filepath.Join(p.dir, build), filepath.Join(p.dir, "sentinels/build.jsonc")); err != nil {
		t.Fatal(err)
	}
	p.write("../.env", "A=1\n")
	if err := p.folder().Begin(); err != nil { // a verb writes something else there
		t.Fatal(err)
	}
	if err := p.checkEnvironment(p.work, ".env"); !errors.Is(err, content.ErrUntrusted) {
		t.Errorf("before it is trusted: %v", err)
	}
	p.approve()
	if err := p.checkEnvironment(p.work, ".env"); err != nil {
		t.Errorf("trusted: %v", err)
	}
	p.write("../.env", "A=2\n")
	if err := p.checkEnvironment(p.work, ".env"); err != nil {
		t.Errorf("edited: %v", err)
	}
}

// TestManyEnvironmentFiles: a folder whose definitions name more environment files than can be shown is not asked
// about, none of the files counts as the user's own, and what is trusted already counts for no bound.
func TestManyEnvironmentFiles(t *testing.T) {
	small, large := "A=1\n", "A="+strings.Repeat("x", 1<<20-10)
	for what, c := range map[string]struct {
		text        string
		files       int
		definitions int
		refused     bool
	}{
		"as many as are shown":    {small, 200, 1, false},
		"of one definition":       {small, 201, 1, true},
		"of several definitions":  {small, 201, 67, true},
		"with more than is shown": {large, 9, 1, true},
	} {
		p := newProject(t)
		for d := range c.definitions {
			var names []string
			for i := d; i < c.files; i += c.definitions {
				names = append(names, fmt.Sprintf(`"%d.env"`, i))
				p.write(fmt.Sprintf("../%d.env", i), c.text)
			}
			p.write(fmt.Sprintf("sentinels/d%d.json", d), `{"envFiles": [`+strings.Join(names, ", ")+`]}`)
		}
		items, err := p.folder().Pending()
		begin := p.folder().Begin()
		if !c.refused {
			if err != nil || begin != nil || len(items) != c.files+c.definitions {
				t.Fatalf("%s: %d items, %v, %v", what, len(items), err, begin)
			}
			p.approve()
			p.write("sentinels/more.json", `{"envFiles": ["more.env"]}`)
			p.write("../more.env", small)
			if _, err := p.folder().Pending(); err != nil {
				t.Errorf("%s, trusted, and one more: %v", what, err)
			}
			continue
		}
		for _, err := range []error{err, begin} {
			if !errors.Is(err, content.ErrUntrusted) || !strings.Contains(err.Error(), "more than 200 environment files") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if known, err := filepath.Glob(filepath.Join(p.opt.Records, "*", "folder.json")); err != nil || len(known) > 0 {
			t.Errorf("%s: the folder is known: %v, %v", what, known, err)
		}
	}
}

// TestRoots: below a root everything counts, and nothing is recorded.
func TestRoots(t *testing.T) {
	p := newProject(t)
	p.opt.Roots = []string{filepath.Dir(p.work)}
	p.write(build, "one")
	p.check(build, true)
	if _, err := os.Stat(p.opt.Records); err == nil {
		t.Error("a record was made")
	}
	p.opt.Roots = []string{p.work[:len(p.work)-1]} // a part of the name is no folder above
	p.check(build, false)
}

// TestOtherNames: a file counts the same by every path to it, and files that no host loads
// are not judged.
func TestOtherNames(t *testing.T) {
	p := newProject(t)
	p.write(build, "one")
	p.write("notes.txt", "text")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(p.work, link); err != nil {
		t.Skip("symbolic links: ", err)
	}
	path := filepath.Join(link, ".sentinel", build)
	if err := p.folder().Check(path, []byte("one")); abi.CodeOf(err) != abi.Denied {
		t.Errorf("by a link: %v", err)
	}
	p.approve()
	if err := p.folder().Check(path, []byte("one")); err != nil {
		t.Errorf("by a link, trusted: %v", err)
	}
	if err := p.folder().Check(filepath.Join(p.dir, "notes.txt"), []byte("x")); err != nil {
		t.Errorf("notes.txt: %v", err)
	}
	continuum := filepath.Join(p.work, ".continuum", "sentinels", "x.json")
	if err := p.folder().Check(continuum, []byte("x")); err != nil { // known by now, and no git
		t.Errorf(".continuum: %v", err)
	}
	q := newProject(t)
	if err := q.folder().Check(filepath.Join(q.work, ".continuum", "sentinels", "x.json"), []byte("x")); abi.CodeOf(err) != abi.Denied {
		t.Errorf(".continuum of an unknown folder: %v", err)
	}
}

// TestNoConfigurationFolder: without a place for records nothing is trusted, and the error
// says what to do.
func TestNoConfigurationFolder(t *testing.T) {
	p := newProject(t)
	p.opt.Records = ""
	p.write(build, "one")
	p.check(build, false)
	if err := p.folder().Check(filepath.Join(p.dir, build), nil); !strings.Contains(abi.As(err).Hint, "SENTINEL_TRUST_ROOTS") {
		t.Errorf("hint: %q", abi.As(err).Hint)
	}
	if err := p.folder().Approve(nil); err == nil {
		t.Error("approved without a record")
	}
}

// TestLinkedFiles: a definition, recipe or plugin that is a link is refused: models write what it leads to, in the project.
func TestLinkedFiles(t *testing.T) {
	p := newProject(t)
	p.write("../shared.json", "{}")
	for _, name := range []string{build, "recipes/r.json", "plugins/p.wasm", "../.continuum/sentinels/a.json"} {
		p.write(name, "{}")
		p.approve()
		p.check(name, true)
		link := filepath.Join(p.dir, name)
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(p.work, "shared.json"), link); err != nil {
			t.Skip("symbolic links: ", err)
		}
		p.check(name, false)
		links, err := p.folder().Links()
		if err != nil || len(links) != 1 || !strings.Contains(links[0].Error(), link) {
			t.Errorf("%s: links %v, %v", name, links, err)
		}
		if items, err := p.folder().Pending(); err != nil || len(items) != 0 {
			t.Errorf("%s: pending %v, %v", name, items, err)
		}
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLinkedFolders: a folder of definitions, recipes or plugins that is a link, or is found by
// one, is refused whatever it leads to, also in a folder that is known. Nothing of it waits for
// trust, and the error names the link.
func TestLinkedFolders(t *testing.T) {
	for name, c := range map[string]struct{ link, to, file string }{
		"to another folder":       {".sentinel/sentinels", "../x", ".sentinel/sentinels/a.json"},
		"to the folder itself":    {".sentinel/sentinels", ".", ".sentinel/sentinels/a.json"},
		"to recipes":              {".sentinel/sentinels", "recipes", ".sentinel/sentinels/a.json"},
		"inside":                  {".sentinel/sentinels", "inner", ".sentinel/sentinels/a.json"},
		"recipes":                 {".sentinel/recipes", "../x", ".sentinel/recipes/a.json"},
		"plugins":                 {".sentinel/plugins", "../x", ".sentinel/plugins/a.wasm"},
		".continuum":              {".continuum", "x", ".continuum/sentinels/a.json"},
		".continuum of sentinels": {".continuum/sentinels", "../x", ".continuum/sentinels/a.json"},
		".continuum elsewhere":    {"sub/.continuum", "../x", "sub/.continuum/sentinels/a.json"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			if err := os.MkdirAll(p.dir, 0o755); err != nil {
				t.Fatal(err)
			}
			link := filepath.Join(p.work, c.link)
			if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(c.to, link); err != nil {
				t.Skip("symbolic links: ", err)
			}
			for _, folder := range []string{c.to, "x/sentinels"} {
				if err := os.MkdirAll(filepath.Join(filepath.Dir(link), folder), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			path := filepath.Join(p.work, c.file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("theirs"), 0o644); err != nil {
				t.Fatal(err)
			}
			of := func() *content.Folder { return content.Open(p.dir, filepath.Join(p.work, "sub"), p.opt) }
			for _, known := range []bool{false, true} {
				err := of().Check(path, []byte("theirs"))
				if abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), link) || !strings.Contains(abi.As(err).Hint, "SENTINEL_TRUST_ROOTS") {
					t.Errorf("known %v: %v", known, err)
				}
				links, err := of().Links()
				if err != nil || len(links) != 1 {
					t.Errorf("known %v: links %v, %v", known, links, err)
				}
				items, err := of().Pending()
				if err != nil || slices.ContainsFunc(items, func(i content.Item) bool { return i.Path == path }) {
					t.Errorf("known %v: pending %v, %v", known, items, err)
				}
				if err := of().Begin(); err != nil {
					t.Fatal(err)
				}
			}
			if err := of().Wrote(path, []byte("theirs")); err != nil {
				t.Error(err)
			}
			// The user's own folder in place of the link: what was there is held.
			if err := os.Remove(link); err != nil {
				t.Fatal(err)
			}
			if err := of().Check(path, []byte("theirs")); abi.CodeOf(err) != abi.Denied {
				t.Errorf("without the link: %v", err)
			}
			p.opt.Roots = []string{p.work}
			if err := of().Check(path, []byte("theirs")); err != nil {
				t.Errorf("below a root: %v", err)
			}
		})
	}
}

// TestContinuumOfProject: a verb in a folder of a project looks for .continuum beside .sentinel,
// and a server in its workspace. Both are judged.
func TestContinuumOfProject(t *testing.T) {
	p := newProject(t)
	sub := filepath.Join(p.work, "sub")
	for _, project := range []string{p.work, sub} {
		path := filepath.Join(project, ".continuum", "sentinels", "x.json")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("theirs"), 0o644); err != nil {
			t.Fatal(err)
		}
		of := content.Open(p.dir, sub, p.opt)
		if err := of.Check(path, []byte("theirs")); abi.CodeOf(err) != abi.Denied {
			t.Errorf("%s: %v", path, err)
		}
	}
	items, err := content.Open(p.dir, sub, p.opt).Pending()
	if err != nil || len(items) != 2 || items[0].Key == items[1].Key {
		t.Errorf("pending: %v, %v", items, err)
	}
}
