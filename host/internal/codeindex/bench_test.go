package codeindex_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/codeindex"
)

// BenchmarkBesideGitGrep measures the index beside git grep over the same tree, in the
// same run: building it, updating it after a save, and a search without and with the
// refresh that precedes it. It reports medians, and their ratios to that of git grep.
//
// The tree is this repository, SENTINEL_BENCH_TREE, or of as many generated files as
// SENTINEL_BENCH_FILES says.
func BenchmarkBesideGitGrep(b *testing.B) {
	program := gitProgram(b)
	dir := benchTree(b)
	opt := options(b, dir)
	opt.Skip = nil
	save := filepath.Join(dir, "sentinel-bench-save.txt")
	b.Cleanup(func() { os.Remove(save) })
	time.Sleep(2100 * time.Millisecond) // what was just changed is read again
	var build, update, search, both, grep []time.Duration
	timed := func(list *[]time.Duration, fn func() error) {
		start := time.Now()
		if err := fn(); err != nil {
			b.Fatal(err)
		}
		*list = append(*list, time.Since(start))
	}
	with := func(opt codeindex.Options, fn func(*codeindex.Index) error) error {
		x, err := codeindex.Open(b.Context(), opt)
		if err != nil {
			return err
		}
		if err := fn(x); err != nil {
			return err
		}
		return x.Close()
	}
	refresh := func(x *codeindex.Index) error {
		_, _, err := x.Refresh(b.Context())
		return err
	}
	find := func(x *codeindex.Index) error {
		r, err := x.Search(b.Context(), []string{"context", "needle", "saved"})
		if err == nil && r.Counts[2] == 0 {
			return fmt.Errorf("the search has not found the save: %v", r.Counts)
		}
		return err
	}
	round := 0
	for b.Loop() {
		round++
		if err := os.WriteFile(save, fmt.Appendf(nil, "saved%d", round), 0o644); err != nil {
			b.Fatal(err)
		}
		timed(&grep, func() error {
			cmd := exec.Command(program, "grep", "-c", "context")
			cmd.Dir = dir
			_, err := cmd.Output()
			if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == 1 { // no match
				return nil
			}
			return err
		})
		fresh := opt
		fresh.Dir = filepath.Join(b.TempDir(), "index")
		timed(&build, func() error { return with(fresh, refresh) })
		if round == 1 {
			opt.Dir = fresh.Dir
		}
		if err := with(opt, refresh); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(save, fmt.Appendf(nil, "saved again %d", round), 0o644); err != nil {
			b.Fatal(err)
		}
		timed(&update, func() error { return with(opt, refresh) })
		timed(&both, func() error {
			return with(opt, func(x *codeindex.Index) error { return cmp.Or(refresh(x), find(x)) })
		})
		if err := with(opt, func(x *codeindex.Index) error {
			if err := refresh(x); err != nil {
				return err
			}
			timed(&search, func() error { return find(x) })
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
	beside := median(grep)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(beside.Seconds()*1000, "grep-ms")
	for _, m := range []struct {
		name string
		list []time.Duration
	}{{"build", build}, {"update", update}, {"search", search}, {"refresh+search", both}} {
		b.ReportMetric(median(m.list).Seconds()*1000, m.name+"-ms")
		b.ReportMetric(float64(median(m.list))/float64(beside), m.name+"/grep")
	}
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

// benchTree returns a work tree to measure.
func benchTree(b *testing.B) string {
	if dir := os.Getenv("SENTINEL_BENCH_TREE"); dir != "" {
		return dir
	}
	n, _ := strconv.Atoi(os.Getenv("SENTINEL_BENCH_FILES"))
	if n == 0 {
		dir := b.TempDir()
		git(b, dir, "clone", "--quiet", "--no-hardlinks", must(b, "git", "rev-parse", "--show-toplevel"), ".")
		return dir
	}
	dir := b.TempDir()
	git(b, dir, "init", "--quiet")
	git(b, dir, "config", "maintenance.auto", "false") // a commit of many files would start it in the background
	git(b, dir, "config", "gc.auto", "0")
	for i := range n {
		name := filepath.Join(dir, fmt.Sprintf("pkg%02d/sub%02d/dir%d/file%d.go", i%40, i/40%50, i/2000%10, i))
		if i < 20_000 {
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				b.Fatal(err)
			}
		}
		text := fmt.Sprintf("package dir%d\n\n// Func%d handles the request of user%d with a context.\nfunc Func%d(ctx context.Context, name string) error {\n\tvalue%d := name + \"%d\"\n\treturn handle(ctx, value%d)\n}\n", i%10, i, i%977, i, i%5003, i, i%5003)
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	git(b, dir, "add", ".")
	git(b, dir, "commit", "--quiet", "-m", "first")
	return dir
}

func must(b *testing.B, name string, args ...string) string {
	b.Helper()
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		b.Fatal(err)
	}
	return string(out[:len(out)-1])
}
