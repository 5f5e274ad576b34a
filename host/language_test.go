package host_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
)

// plainFolders use the words of GLOSSARY.md: their files of [plainFiles], tests among
// them. A pattern is one of [fits].
var plainFolders = []string{".", "**"}

// standardNames are names of the standard library that match a phrase.
var standardNames = []string{"http.NoBody"}

// plainFiles are the extensions of the files that are read.
var plainFiles = []string{".c", ".go", ".h", ".js", ".md", ".mjs", ".rs", ".ts", ".txtar", ".wat"}

// dialect are phrases that have a plain word, with that word. They match in any
// case, and only whole words.
var dialect = map[string]string{
	`carr(y|ies|ied|ying)( it| them| a \w+| the \w+)? (out|on)`: "execute, continue",
	`who(ever|soever)|nobody|somebody`:                          "the user, the caller, a client, no process",
	`(is|are|was|were|be|been) told`:                            "is notified, receives, the log has",
	`lets? go( of)?`:                                            "release, free",
	`runs? that (is|are) on`:                                    "active run",
	`is no (verb|format|number|name|size|duration|command|path|pattern|plugin|text|JSON|address|array|base64|error|form|header|reference|time)\b`: `"invalid ...", "not a ..."`,
	`there is no such`:         "not found",
	`tak(es?|ing|en) up`:       "recover, resume",
	`be(low|hind) it waits`:    "waits for it",
	`sleepless|heeds?|wreck`:   "cancel, follow, damaged file",
	`a bad day`:                "faults and recovery",
	`has the \w+ know`:         "notify, fsync, register",
	`brings? back`:             "restore, recover",
	`has its say`:              "decides, is checked",
	`(make|makes|made) up for`: "compensate, fire late",
	`anew`:                     "again",
	`readies`:                  "prepares",
	`sees? to it that`:         "ensure, check",
	`stands? there`:            "is given, exists",
	`(another|each|every|one|two|three) tr(y|ies)`: "attempt",
	`carrying-out`:                       "execution",
	`c[ao]me to be`:                      "exist, was created, was committed",
	`wholly`:                             "entirely",
	`without a word|(keeps?|kept) quiet`: "without output, without an error",
	`out of patience`:                    "after the grace period, after the timeout",
	`(enough|finds?|needs?|makes?|gives?) room|room back`: "free space, capacity, limit extension",
	`for want of`:               "because there is no ... left",
	`in so many words`:          "literally",
	`by chance`:                 "at random, by accident",
	`what (it|they) c[ao]me to`: "its result",
	`c[ao]mes? to nothing`:      "has no effect, ends without a result",
	`what is no`:                "what is not a",
	`revives?`:                  "replay",
	`tells? apart`:              "distinguish",
	`never comes`:               "does not happen, never settles",
}

// A phrase is one of [dialect].
type phrase struct {
	*regexp.Regexp
	plain    string
	literals [][]byte // in lower case: each match has one of them, see literalsOf
}

func newPhrase(t *testing.T, text, plain string) phrase {
	t.Helper()
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		t.Fatal(err)
	}
	p := phrase{Regexp: regexp.MustCompile(`(?i)\b(` + text + `)\b`), plain: plain}
	for _, literal := range literalsOf(re) {
		p.literals = append(p.literals, []byte(strings.ToLower(literal)))
	}
	if len(p.literals) == 0 {
		t.Fatalf("%q: a match need not have any text of two letters or more", text)
	}
	return p
}

// mayBeIn reports whether a text in lower case has one of the literals. This is many times
// faster than the expression, which is for few lines of the repository.
func (p phrase) mayBeIn(lower []byte) bool {
	return slices.ContainsFunc(p.literals, func(l []byte) bool { return bytes.Contains(lower, l) })
}

func (p phrase) find(line []byte) []byte {
	if !p.mayBeIn(bytes.ToLower(line)) {
		return nil
	}
	return p.Find(line)
}

// literalsOf returns texts of which each match of an expression has at least one, nil if it
// need not have any. Of the parts of a sequence it takes the one whose shortest text is longest.
func literalsOf(re *syntax.Regexp) (best []string) {
	shortest := func(list []string) (n int) {
		for i, text := range list {
			if i == 0 || len(text) < n {
				n = len(text)
			}
		}
		return n
	}
	switch re.Op {
	case syntax.OpLiteral:
		if len(re.Rune) > 1 {
			return []string{string(re.Rune)}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return literalsOf(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if list := literalsOf(sub); shortest(list) > shortest(best) {
				best = list
			}
		}
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			list := literalsOf(sub)
			if list == nil {
				return nil
			}
			best = append(best, list...)
		}
	}
	return best
}

// TestPlainWords keeps phrases that only this project used out of the repository.
func TestPlainWords(t *testing.T) {
	root, err := filepath.Abs("..") // a test runs in the folder of its package
	if err != nil {
		t.Fatal(err)
	}
	var phrases []phrase
	for text, plain := range dialect {
		phrases = append(phrases, newPhrase(t, text, plain))
	}
	seen := map[string]bool{}
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		folder, _ := filepath.Rel(root, filepath.Dir(name))
		pattern := slices.IndexFunc(plainFolders, func(p string) bool { return fits(p, filepath.ToSlash(folder)) })
		if entry.IsDir() && entry.Name() == "node_modules" {
			return filepath.SkipDir
		}
		// This file has the phrases.
		if entry.IsDir() || pattern < 0 || !slices.Contains(plainFiles, filepath.Ext(name)) || filepath.Base(name) == "language_test.go" {
			return nil
		}
		seen[plainFolders[pattern]] = true
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, name := range standardNames {
			text = bytes.ReplaceAll(text, []byte(name), nil)
		}
		lower := bytes.ToLower(text)
		for _, p := range phrases {
			if !p.mayBeIn(lower) {
				continue
			}
			for i, line := range bytes.Split(text, []byte("\n")) {
				if found := p.find(line); found != nil {
					t.Errorf("%s:%d: %q: want plain words, such as: %s", name, i+1, found, p.plain)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range plainFolders {
		if !seen[p] {
			t.Errorf("%s: no such folder, or nothing in it", p)
		}
	}
}

// TestDialectIsFound makes sure that the phrases match what they are for.
func TestDialectIsFound(t *testing.T) {
	var phrases []phrase
	for text, plain := range dialect {
		phrases = append(phrases, newPhrase(t, text, plain))
	}
	for _, text := range []string{
		"carries out a run", "Carry it on", "whoever writes", "Nobody has", "is told of it", "lets go of the lock", "runs that are on go on",
		"x is no verb", "there is no such run", "takes up the run", "a bad day", "has the disk know the names",
		"a duplicate is no error", "what is made up for", "arms the trigger anew", "Arm readies a trigger", "sees to it that", "a header that stands there twice",
		"three tries in all",
		"one carrying-out of a step", "did not come to be", "each wholly or not at all", "Go never dies without a word", "Close kept quiet",
		"has run out of patience", "finds room again", "gives the room back", "for want of descriptors", "it lets go",
		"not in so many words", "met by chance", "what it came to", "it comes to nothing", "What is no module", "revives the guest", "tells apart", "what never comes",
	} {
		if !slices.ContainsFunc(phrases, func(p phrase) bool { return p.find([]byte(text)) != nil }) {
			t.Errorf("%q is not found", text)
		}
	}
	for _, text := range []string{"is no longer", "carries a checksum", "the room", "takes a while", "brings it", "let it go on", "makes up names", "it tries again", "came to an end", "in other words", "room for another", "there is no value", "there is a chance"} {
		for _, p := range phrases {
			if found := p.find([]byte(text)); found != nil {
				t.Errorf("%q: %q is good English", text, found)
			}
		}
	}
}
