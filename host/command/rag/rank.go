package rag

import (
	"cmp"
	"context"
	"math"
	"path"
	"slices"
	"strings"
)

// Limits of the files that are read to rank them: the index says which files have a
// word, not how often.
const (
	spareCounted = 20      // files more than the caller wants
	maxRead      = 8 << 20 // bytes
)

// A candidate is a file with its relevance.
type candidate struct {
	path  string
	score float64
	line  int // most relevant line, 0 if unknown
}

// What each sign of relevance adds to the score of a file.
const (
	scorePath     = 1000 // the request names it
	scoreMention  = 200  // a variable names it
	scoreChanged  = 100  // it differs from the last commit
	scoreName     = 30   // a word of the query is its name or a part of it
	scoreFolder   = 10   // a word is in its path
	scoreWord     = 20   // times the rarity of the word: a word is in its text
	scoreOverview = 5    // it describes the project: README, go.mod
)

// overviewFiles describe a project.
var overviewFiles = []string{
	"readme.md", "readme", "readme.txt", "readme.rst", "contributing.md", "makefile", "go.mod", "package.json", "cargo.toml", "pyproject.toml",
	"setup.py", "requirements.txt", "gemfile", "pom.xml", "build.gradle", "build.gradle.kts", "composer.json", "mix.exs", "cmakelists.txt", "dockerfile",
}

// rankWords scores files by the words of a query in their path and in their text,
// where a rare word has a higher score. Only the files that keep accepts are ranked.
//
// The best files by the words that they have are read, somewhat more than the caller
// wants, and the number of times counts as well, up to three times the score of a word.
// For the others each word counts once.
func rankWords(ctx context.Context, w *workspace, keep func(name string) bool, words []string, want int) (map[string]candidate, error) {
	ranked := map[string]candidate{}
	if len(words) == 0 {
		return ranked, nil
	}
	found, err := w.words(ctx, words)
	if err != nil {
		return nil, err
	}
	rarity := make([]float64, len(words)) // 0: no file has the word
	for i, n := range found.Counts {
		if n > 0 {
			rarity[i] = scoreWord * math.Log(1+float64(len(found.Texts))/float64(n))
		}
	}
	byName := func(name string) float64 {
		if w.visible != nil {
			name = w.visible(name)
		}
		low := strings.ToLower(name)
		if !slices.ContainsFunc(words, func(word string) bool { return strings.Contains(low, word) }) {
			return 0
		}
		return nameScore(name, words)
	}
	// add adds a file. count returns how often it has word i.
	add := func(name string, count func(i int) int) {
		score := byName(name)
		for i := range words {
			n := float64(count(i))
			score += rarity[i] * n / (n + 2)
		}
		// It is rounded so that the order does not depend on the last bits of a float.
		if score = math.Round(score*100) / 100; score > 0 {
			ranked[name] = candidate{path: name, score: score}
		}
	}
	has := map[string]uint64{}
	for _, t := range found.Texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if keep(t.Path) {
			has[t.Path] = t.Words
			add(t.Path, func(i int) int { return int(t.Words >> i & 1) })
		}
	}
	list := byScore(ranked)
	read := 0
	for _, c := range list[:min(len(list), want+spareCounted)] {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if read > maxRead {
			break
		}
		delete(ranked, c.path)
		text, err := w.text(c.path)
		if err != nil {
			continue // deleted since
		}
		read += len(text)
		low := strings.ToLower(text)
		add(c.path, func(i int) int { return max(strings.Count(low, words[i]), int(has[c.path]>>i&1)) })
	}
	return ranked, nil
}

// nameScore scores a path by the words in it.
func nameScore(name string, words []string) (score float64) {
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
			score += scoreName
		case strings.Contains(base, word):
			score += scoreName / 2
		case strings.Contains(low, word):
			score += scoreFolder
		}
	}
	return score
}

// byScore returns the candidates ordered by descending score, then by path.
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
