package toolchain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// ProjectFile is the file that every project has.
const ProjectFile = "plugin.json"

// A Project is a folder with the sources of one plugin.
type Project struct {
	Dir      string
	Name     string // of the plugin and of its module's file
	Language Language
}

// nameRule is clause A2.1 of ABI.md, for plugins and step types.
var nameRule = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
})

// file is the content of a project's plugin.json.
type file struct {
	Language string `json:"language"`
	Name     string `json:"name"`
}

// Open reads the project in dir.
func Open(dir string) (Project, error) {
	path := filepath.Join(dir, ProjectFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Project{}, &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf("open project %q: no %s there", dir, ProjectFile),
			Hint: "`sentinel plugin new NAME --lang go` makes a project"}
	}
	if err != nil {
		return Project{}, fmt.Errorf("open project %q: %w", dir, err)
	}
	var f file
	if err := strictjson.Decode(text, &f, strictjson.Limits{}); err != nil {
		return Project{}, badProject(path, err.Error())
	}
	if err := CheckName(f.Name); err != nil {
		return Project{}, badProject(path, err.Error())
	}
	l, err := Lookup(f.Language)
	if err != nil {
		return Project{}, badProject(path, err.Error())
	}
	return Project{Dir: dir, Name: f.Name, Language: l}, nil
}

func badProject(path, why string) error {
	return &abi.Error{Code: abi.BadFields, Message: fmt.Sprintf("open project: %s: %s", path, why),
		Hint: `it holds {"language": "go", "name": "shout"}`}
}

// CheckName returns an error if no plugin can have that name.
func CheckName(name string) error {
	if nameRule().MatchString(name) {
		return nil
	}
	return &abi.Error{Code: abi.BadFields, Message: fmt.Sprintf("name %q: want a small letter, then up to 63 small letters, digits and _", name)}
}

// Create creates a project in dir, atomically. An existing folder must be empty.
func Create(dir, name string, l Language) (Project, error) {
	if err := CheckName(name); err != nil {
		return Project{}, err
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Project{}, &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("create project %q: there is something already, and it stays as it is", dir),
			Hint: "take another folder with --dir"}
	}
	parent := filepath.Dir(filepath.Clean(dir))
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return Project{}, fmt.Errorf("create project: %w", err)
	}
	draft, err := os.MkdirTemp(parent, ".new-"+name+"-*")
	if err != nil {
		return Project{}, fmt.Errorf("create project: %w", err)
	}
	defer os.RemoveAll(draft)
	if err := fill(draft, name, l); err != nil {
		return Project{}, fmt.Errorf("create project: %w", err)
	}
	if err := os.Chmod(draft, 0o755); err != nil {
		return Project{}, fmt.Errorf("create project: %w", err)
	}
	// On some systems an empty folder prevents the rename. If it is no longer empty,
	// both calls fail.
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Project{}, fmt.Errorf("create project: %w", err)
	}
	if err := os.Rename(draft, dir); err != nil {
		return Project{}, fmt.Errorf("create project: %w", err)
	}
	return Project{Dir: dir, Name: name, Language: l}, nil
}

// fill writes template and SDK. It replaces the plugin's name in names and contents of the
// template.
func fill(dir, name string, l Language) error {
	if l.SDK != nil {
		if err := copyFiles(l.SDK, filepath.Join(dir, "sdk"), func(s string) string { return s }); err != nil {
			return err
		}
	}
	return copyFiles(l.Template, dir, strings.NewReplacer("{{name}}", name).Replace)
}

func copyFiles(from fs.FS, to string, change func(string) string) error {
	return fs.WalkDir(from, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, filepath.FromSlash(strings.TrimSuffix(change(path), ".tmpl")))
		if e.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		text, err := fs.ReadFile(from, path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, []byte(change(string(text))), 0o644)
	})
}

// Module is the default output of a build.
func (p Project) Module() string { return filepath.Join(p.Dir, p.Name+".wasm") }

// Build builds the module and writes it to out, atomically, because a host may watch that
// file. The output of the tools is written to say.
func (p Project) Build(ctx context.Context, out string, say io.Writer) error {
	draft, err := os.MkdirTemp("", "plugin-")
	if err != nil {
		return fmt.Errorf("build %s: %w", p.Name, err)
	}
	defer os.RemoveAll(draft)
	made := filepath.Join(draft, p.Name+".wasm")
	if err := p.Language.Build(ctx, p.Dir, made, say); err != nil {
		return err
	}
	module, err := os.ReadFile(made)
	if err != nil {
		return fmt.Errorf("build %s: %w", p.Name, err)
	}
	return Install(module, out)
}

// Install writes a module to a file, atomically.
func Install(module []byte, to string) error {
	// The name is hidden and does not end in .wasm, so that no host loads it.
	f, err := os.CreateTemp(filepath.Dir(to), ".install-*")
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(module)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), to)
	}
	if err != nil {
		return fmt.Errorf("install %q: %w", to, err)
	}
	return nil
}
