package gitexec

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
)

// Bounds of [Runner.InnerFilter].
const (
	maxIndex  = 256 << 20 // bytes of the list of an index
	maxNested = 8         // submodules in each other
)

// ListConfig are the arguments of git for the configuration that [Config] reads.
var ListConfig = []string{"config", "--list", "--show-scope", "--includes", "-z"}

// A ConfigEntry is one setting of a configuration.
type ConfigEntry struct {
	Scope string // system, global, local, worktree or command
	Key   string // in lower case
	Name  string // the key as git prints it: names in the middle have the case that they are written with
	Value string
}

// OfRepository reports whether a repository has the setting itself, and not its user.
func (e ConfigEntry) OfRepository() bool { return e.Scope == "local" || e.Scope == "worktree" }

// Config returns the settings in what git has printed for [ListConfig].
func Config(out string) iter.Seq[ConfigEntry] {
	return func(yield func(ConfigEntry) bool) {
		fields := strings.Split(out, "\x00")
		for i := 0; i+1 < len(fields); i += 2 {
			key, value, _ := strings.Cut(fields[i+1], "\n")
			if !yield(ConfigEntry{fields[i], strings.ToLower(key), key, value}) {
				return
			}
		}
	}
}

var (
	// hookKey is a setting of a hook, see [hookEvents].
	hookKey = lazyregexp.New(`^hook\..*\.(command|event)$`)
	// filterKey is a setting with a program that git starts when it looks for changes of a file.
	filterKey = lazyregexp.New(`^filter\..*\.(clean|process)$`)
)

// InnerFilter returns a submodule below dir whose repository names a program that is not harmless,
// with the setting; both are "" if there is none. To find out whether a submodule has changes, add
// and commit execute git in it, which starts the filters of its configuration.
func (g *Runner) InnerFilter(ctx context.Context, dir string, harmless func(value string) bool) (folder, key string, err error) {
	return g.innerFilter(ctx, dir, harmless, maxNested)
}

func (g *Runner) innerFilter(ctx context.Context, dir string, harmless func(value string) bool, levels int) (folder, key string, err error) {
	own := *g
	own.MaxOut = maxIndex
	a, err := own.Exec(ctx, dir, "", "", "ls-files", "--full-name", "--stage", "-z", "--", ":(top)")
	if err != nil {
		return "", "", err
	}
	if a.Code != 0 || a.Cut {
		return "", "", Fatal("ls-files", a)
	}
	top, plain := "", &Runner{Program: g.Program} // the variables are of the repository around
	for entry := range strings.SplitSeq(a.Out, "\x00") {
		state, name, ok := strings.Cut(entry, "\t")
		if !ok || !strings.HasPrefix(state, "160000 ") {
			continue
		}
		if top == "" {
			b, err := g.Exec(ctx, dir, "", "", "rev-parse", "--show-toplevel")
			if err != nil || b.Code != 0 {
				return "", "", err
			}
			top = strings.TrimRight(b.Out, "\r\n")
		}
		inner := filepath.Join(top, filepath.FromSlash(name))
		if _, err := os.Lstat(filepath.Join(inner, ".git")); err != nil {
			continue
		}
		if key, err := plain.ownFilter(ctx, inner, harmless); err != nil || key != "" {
			return name, key, err
		}
		if levels > 0 {
			if below, key, err := plain.innerFilter(ctx, inner, harmless, levels-1); err != nil || key != "" {
				return name + "/" + below, key, err
			}
		}
	}
	return "", "", nil
}

// ownFilter returns the first filter that the configuration of a repository has itself.
func (g *Runner) ownFilter(ctx context.Context, dir string, harmless func(value string) bool) (string, error) {
	a, err := g.Exec(ctx, dir, "", "", ListConfig...)
	if err != nil {
		return "", err
	}
	if a.Code != 0 { // no repository: git does not look into it
		return "", nil
	}
	if a.Cut {
		return "", Fatal("config", a)
	}
	for e := range Config(a.Out) {
		if e.OfRepository() && (filterKey.MatchString(e.Key) || hookKey.MatchString(e.Key)) && !harmless(e.Value) {
			return e.Key, nil
		}
	}
	return "", nil
}
