// Package gitexectest tests that settings of git, as users and repositories have them, do not
// change what the packages above gitexec do.
package gitexectest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// An Outcome is what a scenario has done: all that has to be the same with any setting.
type Outcome struct {
	Text string
	// Refusal is the message with which the scenario ended, "" if it came to its end. One
	// that names the setting is allowed: git takes no such value.
	Refusal string
}

// A pair is a setting.
type pair struct{ key, value string }

// usual are values that people have, all at the same time.
var usual = []pair{
	{"push.pushOption", "ci.skip"}, {"i18n.commitEncoding", "ISO-8859-1"}, {"i18n.logOutputEncoding", "ISO-8859-1"},
	{"diff.context", "0"}, {"diff.interHunkContext", "9"},
	{"diff.noprefix", "true"}, {"diff.mnemonicPrefix", "true"}, {"diff.relative", "true"}, {"diff.renames", "copies"},
	{"diff.algorithm", "histogram"}, {"diff.colorMoved", "zebra"},
	{"diff.submodule", "log"}, {"diff.suppressBlankEmpty", "true"}, {"diff.external", "difft"}, {"diff.wsErrorHighlight", "all"},
	{"diff.tool", "meld"},
	{"color.ui", "always"}, {"color.diff", "always"}, {"color.status", "always"}, {"color.push", "always"},
	{"color.remote", "always"}, {"color.transport", "always"}, {"color.advice", "always"}, {"color.grep", "always"},
	{"column.ui", "always"}, {"core.quotePath", "true"}, {"core.pager", "delta"}, {"core.editor", "vim"}, {"core.fsmonitor", "true"},
	{"core.untrackedCache", "true"}, {"core.safecrlf", "true"},
	{"core.commentChar", ";"}, {"core.abbrev", "20"}, {"core.splitIndex", "true"}, {"core.preloadIndex", "false"},
	{"core.whitespace", "trailing-space,space-before-tab"}, {"feature.manyFiles", "true"}, {"index.version", "4"},
	{"commit.gpgSign", "true"}, {"tag.gpgSign", "true"}, {"commit.cleanup", "scissors"}, {"commit.verbose", "true"},
	{"commit.template", "/nonexistent/message"}, {"user.useConfigOnly", "true"},
	{"log.date", "relative"}, {"log.decorate", "full"}, {"log.abbrevCommit", "true"}, {"log.follow", "true"},
	{"log.showRoot", "false"}, {"log.showSignature", "true"}, {"log.diffMerges", "off"}, {"format.pretty", "oneline"},
	{"status.short", "true"}, {"status.branch", "true"}, {"status.showUntrackedFiles", "no"}, {"status.aheadBehind", "false"},
	{"status.showStash", "true"}, {"status.relativePaths", "false"}, {"status.submoduleSummary", "true"},
	{"grep.patternType", "fixed"}, {"grep.lineNumber", "true"}, {"grep.extendedRegexp", "true"}, {"merge.conflictStyle", "zdiff3"},
	{"merge.ff", "only"}, {"merge.log", "true"}, {"merge.verbosity", "5"},
	{"rebase.autoSquash", "true"}, {"rebase.autoStash", "true"}, {"rebase.backend", "apply"}, {"rebase.updateRefs", "true"},
	{"rebase.missingCommitsCheck", "error"}, {"rebase.instructionFormat", "(%an) %s"}, {"rebase.stat", "true"},
	{"apply.whitespace", "error"}, {"rerere.enabled", "true"}, {"rerere.autoUpdate", "true"}, {"pull.rebase", "merges"},
	{"pull.ff", "only"}, {"branch.autoSetupMerge", "always"}, {"branch.autoSetupRebase", "always"}, {"branch.sort", "-committerdate"},
	{"push.default", "nothing"}, {"push.followTags", "true"}, {"push.gpgSign", "if-asked"}, {"push.negotiate", "true"},
	{"push.useForceIfIncludes", "true"}, {"push.autoSetupRemote", "true"}, {"push.recurseSubmodules", "on-demand"},
	{"fetch.prune", "true"}, {"fetch.pruneTags", "true"}, {"fetch.parallel", "0"}, {"fetch.output", "compact"},
	{"fetch.fsckObjects", "true"}, {"fetch.writeCommitGraph", "true"}, {"fetch.recurseSubmodules", "true"},
	{"transfer.fsckObjects", "true"}, {"transfer.hideRefs", "refs/sentinel"}, {"receive.fsckObjects", "true"},
	{"receive.denyNonFastForwards", "true"}, {"receive.denyDeletes", "true"}, {"receive.hideRefs", "refs/heads"},
	{"receive.maxInputSize", "1"},
	{"receive.advertiseAtomic", "false"}, {"uploadpack.hideRefs", "refs/heads"}, {"clone.defaultRemoteName", "upstream"},
	{"clone.rejectShallow", "true"}, {"init.defaultBranch", "trunk"}, {"submodule.recurse", "true"}, {"protocol.allow", "never"},
	{"protocol.version", "0"}, {"gc.auto", "1"}, {"maintenance.auto", "true"}, {"alias.status", "log"}, {"alias.co", "checkout"},
	{"pager.log", "less"}, {"blame.date", "iso"}, {"help.autoCorrect", "10"}, {"checkout.defaultRemote", "upstream"},
	{"core.logAllRefUpdates", "always"}, {"core.trustctime", "false"}, {"core.hooksPath", ".husky"}, {"core.checkStat", "minimal"},
	{"trace2.eventTarget", "0"}, {"notes.rewriteRef", "refs/notes/*"}, {"notes.displayRef", "refs/notes/*"},
}

// broke are values that each changed the outcome once; the last one git refuses.
var broke = []pair{
	{"push.pushOption", "x"}, {"i18n.commitEncoding", "ISO-8859-1"}, {"diff.context", "0"}, {"receive.maxInputSize", "1"},
	{"grep.patternType", "fixed"}, {"core.ignoreStat", "true"}, {"merge.conflictStyle", "diff3"},
	{"rebase.backend", "apply"}, {"format.pretty", "hostile"}, {"color.diff", "always"}, {"diff.noprefix", "true"},
	{"core.safecrlf", "true"}, {"core.bigFileThreshold", "0"}, {"log.date", "hostile"}, {"pull.twohead", "ours"}, {"core.compression", "much"},
}

// hostile are the values that the long form gives each setting.
var hostile = []string{"true", "0", "", "hostile", "refs/heads"}

// names stand for the parts of a key that are free.
var names = strings.NewReplacer(
	"<name>", "origin", "<url>", "https://127.0.0.1", "<cmd>", "log", "<driver>", "text", "<tool>", "meld", "<base>", "https://127.0.0.1/",
	"<format>", "ssh", "<id>", "x", "<identity>", "x", "<task>", "gc", "<group>", "x", "<filter>", "tree", "<msg-id>", "badDate",
	"<command>", "rebase", "<pattern>", "refs/heads", "<condition>", "gitdir:/",
)

// keys returns the settings that git knows.
func keys(t *testing.T) (all []string) {
	t.Helper()
	out, err := exec.Command("git", "help", "--config").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if key := strings.TrimSpace(line); strings.Contains(key, ".") && !strings.ContainsAny(key, " ") {
			all = append(all, strings.ReplaceAll(names.Replace(key), "*", "x"))
		}
	}
	if len(all) < 300 {
		t.Fatalf("git help --config lists %d settings", len(all))
	}
	return all
}

// file writes settings as git reads them.
func file(t *testing.T, path string, settings []pair) {
	t.Helper()
	var text bytes.Buffer
	for _, s := range settings {
		section, key := s.key[:strings.LastIndexByte(s.key, '.')], s.key[strings.LastIndexByte(s.key, '.')+1:]
		if name, sub, ok := strings.Cut(section, "."); ok {
			section = fmt.Sprintf("%s %q", name, sub)
		}
		fmt.Fprintf(&text, "[%s]\n\t%s = %q\n", section, key, s.value)
	}
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// decided are beginnings of settings with which the user decides about the outcome, so that it
// may be another: identities, remotes, line ends.
var decided = []string{"user.", "author.", "committer.", "include.", "includeif.", "url.", "alias.", "remote.", "core.autocrlf", "core.eol"}

// unnamed are those where git refuses a value, or warns of it, without naming the setting, or that it
// cannot read. A push to a repository on this machine fails with any receive.procReceiveRefs, as that
// of the user does.
var unnamed = []string{"diff.ignoresubmodules", "core.createobject", "receive.fsck.", "receive.procreceiverefs", "fetch.fsck.", "fsck.", "gitweb.remote_heads", "trace2."}

// Settings runs a scenario with each setting of git and compares what it does with what it does
// without any. The scenario reads settings from the file of configuration that it is given; the
// first time that is empty. With testing.Short there are the usual values at the same time,
// and those that once changed the outcome; the long form tries all.
func Settings(t *testing.T, scenario func(config string) Outcome) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "settings")
	run := func(settings ...pair) Outcome {
		file(t, config, settings)
		return scenario(config)
	}
	want := run()
	if want.Refusal != "" {
		t.Fatalf("without settings: %s", want.Refusal)
	}
	tried, refused := 1, 0
	// search finds the settings of a group that change the outcome.
	var search func(group []pair)
	search = func(group []pair) {
		tried++
		got := run(group...)
		switch {
		case got == want:
		case len(group) > 1:
			search(group[:len(group)/2])
			search(group[len(group)/2:])
		case mentions(got, group[0].key) && !mentions(want, group[0].key): // also a warning, or the other end of a push
			refused++
		default:
			t.Errorf("%s = %q changes the outcome:\n%s", group[0].key, group[0].value, difference(want, got))
		}
	}
	search(usual)
	last := len(broke) - 1
	search(broke[:last])
	search(broke[last:])
	if testing.Short() {
		t.Log("each value of each setting: not with -short")
		return
	}
	for _, value := range hostile {
		var group []pair
		for _, key := range keys(t) {
			begins := func(prefix string) bool { return strings.HasPrefix(strings.ToLower(key), prefix) }
			if !slices.ContainsFunc(slices.Concat(decided, unnamed), begins) {
				group = append(group, pair{key, value})
			}
		}
		for part := range slices.Chunk(group, 64) {
			search(part)
		}
	}
	t.Logf("%d scenarios; git refuses %d values", tried, refused)
}

// mentions reports whether git names a setting in an outcome.
func mentions(o Outcome, key string) bool {
	return strings.Contains(strings.ToLower(o.Refusal+o.Text), strings.ToLower(key))
}

// difference returns what is different in an outcome, from the first line on.
func difference(want, got Outcome) string {
	a, b := strings.Split(want.Text, "\n"), strings.Split(got.Text, "\n")
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	part := func(lines []string) string { return strings.Join(lines[min(i, len(lines)):min(i+4, len(lines))], "\n") }
	return fmt.Sprintf("refusal %q\nwant:\n%s\ngot:\n%s", got.Refusal, part(a), part(b))
}
