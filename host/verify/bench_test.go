package verify_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/host/verify"
)

// BenchmarkVerify reports the time of a verification with twenty checks of files and
// patterns, beside `git worktree add` and reading these files, in turns.
func BenchmarkVerify(b *testing.B) {
	for _, files := range []int{50, 1000} {
		b.Run(fmt.Sprint(files), func(b *testing.B) {
			dir := b.TempDir()
			git := func(args ...string) {
				cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
				cmd.Dir = dir
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("git %v: %v\n%s", args, err, out)
				}
			}
			git("init", "-q", "-b", "work")
			for n := range files {
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d.txt", n)), fmt.Appendf(nil, "line %d\nfunc f%d()\n", n, n), 0o600); err != nil {
					b.Fatal(err)
				}
			}
			git("add", "-A")
			git("commit", "-q", "-m", "work")
			var c ticket.Criteria
			for n := range 10 {
				c.Checks = append(c.Checks,
					ticket.Check{ID: fmt.Sprintf("f%d", n), Type: verify.FileExists, Verify: json.RawMessage(fmt.Sprintf(`{"path":"f%d.txt","contains":["line"]}`, n))},
					ticket.Check{ID: fmt.Sprintf("p%d", n), Type: verify.CodePattern, Verify: json.RawMessage(fmt.Sprintf(`{"file":"f%d.txt","pattern":"^func f\\d+"}`, n+10))})
			}
			v := verify.New(verify.Options{Dir: filepath.Join(b.TempDir(), "verify")})
			var own, reference []time.Duration
			for n := 0; b.Loop(); n++ {
				began := time.Now()
				if r, err := v.Run(b.Context(), verify.Job{Criteria: &c, RepoURL: dir, Branch: "work"}); err != nil || r.Status != verify.Passing {
					b.Fatalf("%+v %v", r, err)
				}
				own = append(own, time.Since(began))
				tree := filepath.Join(b.TempDir(), fmt.Sprint(n))
				began = time.Now()
				git("worktree", "add", "-q", "--detach", tree, "work")
				for n := range 20 {
					if _, err := os.ReadFile(filepath.Join(tree, fmt.Sprintf("f%d.txt", n))); err != nil {
						b.Fatal(err)
					}
				}
				reference = append(reference, time.Since(began))
			}
			slices.Sort(own)
			slices.Sort(reference)
			mine, other := own[len(own)/2], reference[len(reference)/2]
			b.ReportMetric(float64(mine.Microseconds()), "verify-us")
			b.ReportMetric(float64(other.Microseconds()), "worktree-us")
			b.ReportMetric(float64(mine)/float64(other), "verify/worktree")
		})
	}
}
