package gitexec

import (
	"context"
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

// filterKey is a setting with a program that git starts when it looks for changes of a file.
var filterKey = lazyregexp.New(`^filter\..*\.(clean|process)$`)

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
	a, err := g.Exec(ctx, dir, "", "", "config", "--list", "--show-scope", "--includes", "-z")
	if err != nil {
		return "", err
	}
	if a.Code != 0 { // no repository: git does not look into it
		return "", nil
	}
	if a.Cut {
		return "", Fatal("config", a)
	}
	fields := strings.Split(a.Out, "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		key, value, _ := strings.Cut(fields[i+1], "\n")
		key = strings.ToLower(key)
		if (fields[i] == "local" || fields[i] == "worktree") && filterKey.MatchString(key) && !harmless(value) {
			return key, nil
		}
	}
	return "", nil
}
