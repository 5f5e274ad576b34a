package rag

import (
	"cmp"
	"context"
	"math"
	"path"
	"slices"
	"strings"
)

// readBudget bounds how many bytes of files are read to rank them.
const readBudget = 8 << 20

// A candidate is a file with its marks.
type candidate struct {
	path  string
	score float64
	line  int // where to look first, 0 if nowhere
}

// Marks of what says that a file matters, besides the words in it.
const (
	markPath    = 1000 // the request names it
	markMention = 200  // a variable names it
	markChanged = 100  // it differs from the last commit
	markName    = 30   // a word of the query is its name, or a part of it
	markFolder  = 10   // a word is in its path
	markWord    = 20   // times rarity: a word is in its text
	markCustom  = 5    // every newcomer reads it: README, go.mod
)

// customFiles tell what a project is.
var customFiles = []string{
	"readme.md", "readme", "readme.txt", "readme.rst", "contributing.md", "makefile", "go.mod", "package.json", "cargo.toml", "pyproject.toml",
	"setup.py", "requirements.txt", "gemfile", "pom.xml", "build.gradle", "build.gradle.kts", "composer.json", "mix.exs", "cmakelists.txt", "dockerfile",
}

// rankWords marks files for the words of a query: in their path, and in their
// text, where a rare word counts for more. whole is false if not every file
// could be read within the budget.
func rankWords(ctx context.Context, w *workspace, files []string, words []string) (ranked map[string]candidate, whole bool, err error) {
	ranked, whole = map[string]candidate{}, true
	if len(words) == 0 {
		return ranked, true, nil
	}
	counts := map[string][]int{}
	having := make([]int, len(words)) // files that have the word
	hidden := map[string]bool{}       // binary, a secret, too large or gone: not to be found
	read := 0
	for _, name := range files {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		if read > readBudget {
			whole = false
			break
		}
		text, err := w.text(name)
		if err != nil {
			hidden[name] = true
			continue
		}
		read += len(text)
		low := strings.ToLower(text)
		row := make([]int, len(words))
		for i, word := range words {
			if row[i] = strings.Count(low, word); row[i] > 0 {
				having[i]++
			}
		}
		counts[name] = row
	}
	for _, name := range files {
		if hidden[name] {
			continue
		}
		score := nameMarks(name, words)
		for i, n := range counts[name] {
			if n == 0 {
				continue
			}
			rarity := math.Log(1 + float64(len(counts))/float64(having[i]))
			score += markWord * rarity * float64(n) / (float64(n) + 2)
		}
		// Rounded, so that no order hangs on the last bits of a float.
		if score = math.Round(score*100) / 100; score > 0 {
			ranked[name] = candidate{path: name, score: score}
		}
	}
	return ranked, whole, nil
}

// nameMarks marks a path for the words in it.
func nameMarks(name string, words []string) (score float64) {
	low := strings.ToLower(name)
	base := path.Base(low)
	var own []string
	stem, _, _ := strings.Cut(path.Base(name), ".")
	for _, p := range strings.FieldsFunc(stem, func(r rune) bool { return r == '-' || r == '.' }) {
		for _, q := range append(nameParts(p), p) {
			own = append(own, strings.ToLower(q))
		}
	}
	for _, word := range words {
		switch {
		case slices.Contains(own, word):
			score += markName
		case strings.Contains(base, word):
			score += markName / 2
		case strings.Contains(low, word):
			score += markFolder
		}
	}
	return score
}

// byScore orders the best first, equals by path.
func byScore(ranked map[string]candidate) []candidate {
	list := make([]candidate, 0, len(ranked))
	for _, c := range ranked {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.path, b.path))
	})
	return list
}
