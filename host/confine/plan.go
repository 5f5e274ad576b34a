package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/pathtext"
)

// A plan is what the launcher does before it executes a command.
type plan struct {
	Path     string    `json:"path"`
	Args     []string  `json:"args"`
	Env      []string  `json:"env"`
	Dir      string    `json:"dir"`
	Scratch  string    `json:"scratch"`
	Launch   string    `json:"launch"` // folder of the launcher, which the command cannot reach
	Layers   string    `json:"layers"` // folder for what the command adds to caches
	Write    []string  `json:"write"`
	Folder   *folderID `json:"folder,omitempty"` // of the first of Write, nil for any
	Outside  []string  `json:"outside"`
	Read     []string  `json:"read"`
	Hide     []string  `json:"hide"`
	Protect  []string  `json:"protect"`
	Caches   []cache   `json:"caches"`
	Limits   Limits    `json:"limits"`
	Cgroup   *cgroup   `json:"cgroup,omitempty"` // that the process enters; nil for none
	Epoll    uint64    `json:"epoll"`            // watches of epoll that the command may have; 0 for no limit
	User     uint64    `json:"user"`             // processes of the user before, which count for its limit where the process is not alone
	Alone    bool      `json:"alone"`            // the process is the first of new namespaces
	Offline  bool      `json:"offline"`          // one of them is a network namespace
	Landlock int       `json:"landlock"`         // version to use, 0 for none
	Probe    bool      `json:"probe"`            // prepare everything and execute nothing

	events *os.File // of the cgroup, which the process has entered
}

// A cgroup bounds the memory and the processes of one command, as the kernel counts them.
type cgroup struct {
	Folders []string `json:"folders"` // in each hierarchy
	Enter   string   `json:"enter"`   // name of the file by which one enters
	Events  string   `json:"events"`  // file with the number of processes that the kernel has ended for memory
	Memory  uint64   `json:"memory"`  // limit of the command
}

// A folderID is the identity of a folder.
type folderID struct {
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
}

// A cache is a folder of the user's caches that a command sees in its own home. What it
// writes there goes to the scratch folder.
type cache struct {
	From string `json:"from"`
	To   string `json:"to"` // below the home of the command
}

// Folders in the scratch folder. Commands that have the same one share them.
const (
	scratchHome   = "home"
	scratchTmp    = "tmp"
	scratchLayers = "layers" // of the command that made the lock there, see plan.Layers
	layersLock    = "lock"
)

// What is in the folder of a launcher.
const (
	planFile   = "plan"
	statusFile = "status"
	rootFolder = "root"   // mount point of the root of the namespace
	socketFile = "socket" // of an offline command, see Process.Dial
)

// Program returns the process that executes c: this program again. Its SysProcAttr, if any,
// names the namespaces that it has to be started in. The launch has to be closed when all
// processes of the command have ended.
func Program(c *Command) (*exec.Cmd, *Launch, error) {
	l := new(Launch)
	cmd, err := l.prepare(c)
	if err != nil {
		l.Close()
		return nil, nil, err
	}
	return cmd, l, nil
}

// A Launch is what the launcher of a command needs in the scratch folder.
type Launch struct {
	dir   string // empty for none
	stays bool   // the launcher stays while the command runs, and reports its end
	lock  string // of the layers, empty if another command has them

	processes uint64  // that the command was promised
	cgroup    *cgroup // nil for none
}

// Close removes the files of the launch, and releases the layers for another one. What the
// command has written is removed with the scratch folder.
func (l *Launch) Close() {
	release(l.processes)
	l.processes = 0
	l.cgroup.remove()
	l.cgroup = nil
	if l.lock != "" {
		_ = os.Remove(l.lock)
	}
	if l.dir == "" {
		return
	}
	for _, name := range []string{planFile, statusFile, socketFile, rootFolder, ""} {
		_ = os.Remove(filepath.Join(l.dir, name)) // the folder stays if layers are there
	}
}

func (l *Launch) prepare(c *Command) (*exec.Cmd, error) {
	if !filepath.IsAbs(c.Root) || !filepath.IsAbs(c.Scratch) {
		return nil, fmt.Errorf("confine: %q and %q: want absolute paths", c.Root, c.Scratch)
	}
	for _, wall := range c.Require {
		if i := slices.IndexFunc(Gaps(), func(g Gap) bool { return g.Wall == wall }); i >= 0 {
			return nil, fmt.Errorf("confine: required, and not on this machine: %s", Gaps()[i])
		}
	}
	for _, path := range slices.Concat(c.Hide, c.Protect) {
		if link := linkBelow(c.Root, path); link != "" {
			return nil, fmt.Errorf("confine: %s is a symbolic link, which the command could replace, and %s is kept from it: put the file or folder itself there", link, path)
		}
	}
	home, tmp := filepath.Join(c.Scratch, scratchHome), filepath.Join(c.Scratch, scratchTmp)
	layers := filepath.Join(c.Scratch, scratchLayers)
	for _, dir := range []string{home, tmp, layers} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	var err error
	if l.dir, err = os.MkdirTemp(c.Scratch, "launch-"); err != nil {
		return nil, err
	}
	err = errors.Join(os.Mkdir(filepath.Join(l.dir, rootFolder), 0o700), os.WriteFile(filepath.Join(l.dir, statusFile), nil, 0o600))
	if err != nil {
		return nil, err
	}
	// Two mounts must not have the same layer at one time.
	lock := filepath.Join(layers, layersLock)
	if os.Mkdir(lock, 0o700) == nil {
		l.lock = lock
	} else {
		layers = filepath.Join(l.dir, scratchLayers)
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + tmp, "LANG=C.UTF-8", "CI=true", "PWD=" + c.Dir}
	// Shims of rustup look for their toolchains in the home, which is another one here.
	if dir := rustup(); dir != "" && c.Env["RUSTUP_HOME"] == "" {
		env = append(env, "RUSTUP_HOME="+dir)
	}
	for name, value := range c.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") || slices.Contains([]string{"HOME", "TMPDIR", Marker}, name) {
			return nil, fmt.Errorf("confine: variable %q cannot be given to a command", name)
		}
		env = slices.DeleteFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
		env = append(env, name+"="+value)
	}
	p := plan{
		Path: "/bin/sh", Args: []string{"sh", "-c", c.Shell}, Env: env, Dir: c.Dir, Scratch: c.Scratch, Launch: l.dir, Layers: layers, Write: []string{c.Root, home, tmp},
		Read: c.Read, Hide: c.Hide, Protect: c.Protect, Outside: c.Outside, Limits: c.Limits.withDefaults(), Offline: c.Offline,
	}
	if c.Folder != nil {
		p.Folder = idOf(c.Folder)
	}
	if len(c.Argv) > 0 {
		p.Path, p.Args = c.Argv[0], c.Argv
	}
	if l.processes, err = promise(p.Limits.Processes); err != nil {
		return nil, err
	}
	p.Limits.Processes = l.processes
	cmd, err := start(&p)
	l.stays, l.cgroup = p.Alone, p.Cgroup
	return cmd, err
}

// rustup returns the folder of the toolchains of rustup, if there is one.
func rustup() string {
	dir := os.Getenv("RUSTUP_HOME")
	if home, err := os.UserHomeDir(); err == nil && dir == "" {
		dir = filepath.Join(home, ".rustup")
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}

// within reports whether path is dir or below it. Both are clean.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// linkBelow returns the first symbolic link on the way from a folder to a path below it, ""
// for none.
func linkBelow(dir, path string) string {
	if path == dir || !within(path, dir) {
		return ""
	}
	at := dir
	for part := range strings.SplitSeq(strings.TrimPrefix(path[len(dir):], "/"), "/") {
		at = filepath.Join(at, part)
		if info, err := os.Lstat(at); err != nil {
			return ""
		} else if info.Mode()&os.ModeSymlink != 0 {
			return at
		}
	}
	return ""
}

// existing returns the paths that exist, without symbolic links, each once.
func existing(paths []string) (list []string) {
	for _, path := range paths {
		real, err := filepath.EvalSymlinks(path)
		if err != nil || slices.Contains(list, real) {
			continue
		}
		list = append(list, real)
	}
	return list
}

// store writes the plan to where the launcher reads it. A variable of the environment could
// not hold it.
func (p *plan) store() error {
	text, err := json.Marshal(p.mapped(pathtext.Encode))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.Launch, planFile), text, 0o600)
}

// loadPlan reads what store has written.
func loadPlan(launch string) (plan, error) {
	var p plan
	text, err := os.ReadFile(filepath.Join(launch, planFile))
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	return p.mapped(pathtext.Decode), err
}

// mapped returns a copy of the plan with f applied to all arguments, variables and paths,
// which need not be UTF-8.
func (p plan) mapped(f func(string) string) plan {
	for _, text := range []*string{&p.Path, &p.Dir, &p.Scratch, &p.Launch, &p.Layers} {
		*text = f(*text)
	}
	for _, list := range []*[]string{&p.Args, &p.Env, &p.Write, &p.Read, &p.Hide, &p.Protect, &p.Outside} {
		*list = slices.Clone(*list)
		for i, text := range *list {
			(*list)[i] = f(text)
		}
	}
	if p.Cgroup != nil {
		c := *p.Cgroup
		c.Folders, c.Events = slices.Clone(c.Folders), f(c.Events)
		for i, dir := range c.Folders {
			c.Folders[i] = f(dir)
		}
		p.Cgroup = &c
	}
	p.Caches = slices.Clone(p.Caches)
	for i, c := range p.Caches {
		p.Caches[i] = cache{f(c.From), f(c.To)}
	}
	return p
}
