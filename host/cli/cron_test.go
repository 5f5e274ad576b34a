package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/fixturetest"
)

// TestComingFromCron serves the two definitions of the page "Coming from cron", each second in place
// of their times, with a state folder of an earlier format and a log file on a full disk. Neither
// schedule stands still after a kill in the middle of both jobs.
func TestComingFromCron(t *testing.T) {
	page, err := os.ReadFile("../../triggers/CRON.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```json\n")
	if len(blocks) != 3 {
		t.Fatalf("%d definitions on the page, want 2", len(blocks)-1)
	}
	dir := t.TempDir()
	fixturetest.Unpack(t, "../testdata/state/format-1.tar.gz", dir)
	job := `echo begin >> '` + dir + `/%.txt'; sleep 0.7; echo end >> '` + dir + `/%.txt'`
	for i, name := range []string{"backup", "sync"} {
		text, _, _ := strings.Cut(blocks[i+1], "```")
		for old, next := range map[string]string{
			"30 2 * * *": "* * * * * *", "*/10 8-18 * * 1-5": "* * * * * *", `"/srv/app"`: `"` + dir + `"`,
			"/usr/local/bin/backup.sh": strings.ReplaceAll(job, "%", name), "./sync.sh": strings.ReplaceAll(job, "%", name),
		} {
			text = strings.Replace(text, old, next, 1)
		}
		if err := os.WriteFile(filepath.Join(dir, ".sentinel", "sentinels", name+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log := "/dev/full"
	if _, err := os.Stat(log); err != nil {
		t.Log("SKIPPED: no /dev/full here, so the log is on a disk with space")
		log = filepath.Join(dir, "serve.log")
	}
	serve := func() *exec.Cmd {
		t.Helper()
		cmd := exec.Command("sentinel", "serve", "--listen", "none", "--log-file", log)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+filepath.Join(dir, "config"), "XDG_CACHE_HOME="+cacheHome, "SENTINEL_TRUST_ROOTS="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		return cmd
	}
	// counts returns how often both jobs have begun and ended.
	counts := func() (begun, ended [2]int) {
		for i, name := range []string{"backup", "sync"} {
			text, _ := os.ReadFile(filepath.Join(dir, name+".txt"))
			begun[i], ended[i] = strings.Count(string(text), "begin"), strings.Count(string(text), "end")
		}
		return begun, ended
	}
	await := func(what string, holds func(begun, ended [2]int) bool) {
		t.Helper()
		for limit := time.Now().Add(2 * time.Minute); !holds(counts()); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(limit) {
				begun, ended := counts()
				t.Fatalf("%s: begun %v, ended %v", what, begun, ended)
			}
		}
	}
	server := serve()
	await("after the upgrade", func(_, ended [2]int) bool { return ended[0] > 0 && ended[1] > 0 })
	await("both jobs under way", func(begun, ended [2]int) bool { return begun[0] > ended[0] && begun[1] > ended[1] })
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait()
	_, before := counts()
	serve()
	await("after the kill", func(_, ended [2]int) bool { return ended[0] > before[0]+1 && ended[1] > before[1]+1 })
}
