package gitexec

import (
	"os"
	"sync"
)

// A Setting is one of git that this package sets for each git, over every file of
// configuration, with the reason.
type Setting struct {
	Key, Value, Why string
}

// Reasons that several settings share.
const (
	runs    = "its value is a program, or has git start one"
	hides   = "a check would be off"
	reads   = "an answer or a prompt would show another form of a change than the code and models read"
	colours = "escape sequences would be in texts that code and models read"
	rebases = "a rebase would stop, or give another result, for a reason that no answer names"
	refuses = "the repository on this machine would refuse the branch of a ticket"
	fetches = "other references or repositories than the one that is meant would be read or changed"
	sends   = "more than the one branch would be sent, or the remote would refuse it"
	tidies  = "housekeeping of git would go on beside later steps, in a repository of the user"
)

// Settings are the settings of git that neither a repository nor the user decides about: what
// names a program, what weakens a check, and what changes the texts that this module reads.
// All others are as the user has them, for example identities, credentials, proxies, rewritten
// URLs, ignored files, attributes, line ends and filters.
//
// A setting with many values is cleared by an empty one, which git reads last.
var Settings = []Setting{
	{"core.hooksPath", os.DevNull, runs},
	{"core.fsmonitor", "false", runs},
	{"core.pager", "cat", runs},
	{"core.editor", "false", runs},
	{"sequence.editor", "false", runs},
	{"core.askPass", "", runs},
	{"core.alternateRefsCommand", "true", runs},
	{"commit.gpgSign", "false", runs},
	{"tag.gpgSign", "false", runs},
	{"push.gpgSign", "false", runs},
	{"log.showSignature", "false", runs},
	{"merge.verifySignatures", "false", runs},
	{"diff.external", "", runs},
	{"init.templateDir", "", runs},
	{"protocol.ext.allow", "never", runs},
	{"protocol.fd.allow", "never", runs},

	{"core.protectNTFS", "true", hides},
	{"core.protectHFS", "true", hides},
	{"safe.bareRepository", "explicit", hides},

	{"core.quotePath", "false", reads},
	{"i18n.commitEncoding", "UTF-8", "messages are UTF-8: git would call them something else, and show them as that"},
	{"i18n.logOutputEncoding", "UTF-8", reads},
	{"diff.context", "3", reads},
	{"diff.interHunkContext", "0", reads},
	{"diff.ignoreSubmodules", "dirty", reads},
	{"diff.noprefix", "false", reads},
	{"diff.mnemonicPrefix", "false", reads},
	{"diff.srcPrefix", "a/", reads},
	{"diff.dstPrefix", "b/", reads},
	{"diff.relative", "false", reads},
	{"diff.renames", "true", reads},
	{"diff.submodule", "short", reads},
	{"diff.suppressBlankEmpty", "false", reads},
	{"diff.orderFile", os.DevNull, reads},
	{"format.pretty", "medium", reads},
	{"log.date", "default", reads},
	{"log.decorate", "false", reads},
	{"log.showRoot", "true", reads},
	{"log.follow", "false", reads},
	{"log.diffMerges", "separate", reads},
	{"status.showUntrackedFiles", "normal", "a new file would be missing from the changes"},
	{"status.aheadBehind", "true", reads},
	{"status.relativePaths", "true", reads},
	{"grep.patternType", "basic", "marks of a conflict would not be found"},
	{"grep.extendedRegexp", "false", "marks of a conflict would not be found"},
	{"advice.detachedHead", "false", reads},

	{"color.ui", "false", colours},
	{"color.advice", "false", colours},
	{"color.branch", "false", colours},
	{"color.diff", "false", colours},
	{"color.grep", "false", colours},
	{"color.push", "false", colours},
	{"color.remote", "false", colours},
	{"color.status", "false", colours},
	{"color.transport", "false", colours},

	{"core.abbrev", "auto", reads},
	{"core.bigFileThreshold", "512m", "changes of a text file would be missing, as of one that is binary"},
	{"core.ignoreStat", "false", "changes would be missing from a commit, and a rebase would stop"},
	{"core.safecrlf", "warn", "a file with mixed line ends would keep all work of a ticket from being committed"},
	{"commit.cleanup", "default", rebases},
	{"merge.conflictStyle", "merge", "what agents read about a conflict names its two sides alone"},
	{"merge.autoStash", "false", "changes of the user would be moved"},
	{"rebase.backend", "merge", rebases},
	{"rebase.autoSquash", "false", rebases},
	{"rebase.missingCommitsCheck", "ignore", rebases},
	{"rebase.instructionFormat", "", rebases},
	{"rebase.rebaseMerges", "false", rebases},
	{"rebase.updateRefs", "false", "a rebase would move other branches"},
	{"rerere.enabled", "false", "a conflict would be resolved by what was recorded for another one"},

	{"push.followTags", "false", sends},
	{"push.pushOption", "", "a remote without options refuses such a push, also the repository on this machine"},
	{"push.negotiate", "false", sends},
	{"push.useForceIfIncludes", "false", sends},
	{"push.recurseSubmodules", "no", sends},

	{"submodule.recurse", "false", fetches},
	{"fetch.recurseSubmodules", "false", fetches},
	{"fetch.negotiationAlgorithm", "default", "git refuses all work for a value that it does not know"},
	{"fetch.prune", "false", fetches},
	{"fetch.pruneTags", "false", fetches},
	{"clone.rejectShallow", "false", "a shallow repository of the user would have no worktrees"},
	{"clone.defaultRemoteName", "origin", "the remote of a clone is named in answers and settings"},

	{"transfer.hideRefs", "!refs", refuses},
	{"uploadpack.hideRefs", "!refs", refuses},
	{"receive.hideRefs", "!refs", refuses},
	{"receive.advertiseAtomic", "true", refuses},
	{"receive.maxInputSize", "0", refuses},
	{"receive.certNonceSeed", "", refuses},

	{"gc.auto", "0", tidies},
	{"maintenance.auto", "false", tidies},
	{"receive.autogc", "false", tidies},
	{"fetch.writeCommitGraph", "false", tidies},
}

// hookEvents are the events of hooks. Git 2.54 and newer executes commands that the settings
// hook.NAME.event and hook.NAME.command name, wherever core.hooksPath leads; git 2.55 and newer does not
// for an event that is switched off. For git 2.54, callers refuse to work in repositories with such
// settings, and [Runner.ReceivePack] switches the hooks off by their names.
var hookEvents = []string{
	"applypatch-msg", "commit-msg", "fsmonitor-watchman", "p4-changelist", "p4-post-changelist", "p4-pre-submit", "p4-prepare-changelist", "post-applypatch",
	"post-checkout", "post-commit", "post-index-change", "post-merge", "post-receive", "post-rewrite", "post-update", "pre-applypatch", "pre-auto-gc",
	"pre-commit", "pre-merge-commit", "pre-push", "pre-rebase", "pre-receive", "prepare-commit-msg", "proc-receive", "push-to-checkout",
	"reference-transaction", "sendemail-validate", "update",
}

// arguments returns the settings as arguments of git, made once.
var arguments = sync.OnceValue(func() (args []string) {
	for _, s := range Settings {
		args = append(args, "-c", s.Key+"="+s.Value)
	}
	for _, event := range hookEvents {
		args = append(args, "-c", "hook."+event+".enabled=false")
	}
	return args
})
