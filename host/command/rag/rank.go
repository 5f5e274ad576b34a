package rag

import (
	"cmp"
	"context"
	"math"
	"path"
	"slices"
	"strings"
)

// maxRead limits the bytes of files that are read to rank them.
const maxRead = 8 << 20

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
// where a rare word has a higher score. complete is false if the limit ended the
// reading before the last file.
func rankWords(ctx context.Context, w *workspace, files []string, words []string) (ranked map[string]candidate, complete bool, err error) {
	ranked, complete = map[string]candidate{}, true
	if len(words) == 0 {
		return ranked, true, nil
	}
	counts := map[string][]int{}
	having := make([]int, len(words)) // number of files with the word
	hidden := map[string]bool{}       // binary, secret, too large or deleted: not found
	read := 0
	for _, name := range files {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		if read > maxRead {
			complete = false
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
		score := nameScore(name, words)
		for i, n := range counts[name] {
			if n == 0 {
				continue
			}
			rarity := math.Log(1 + float64(len(counts))/float64(having[i]))
			score += scoreWord * rarity * float64(n) / (float64(n) + 2)
		}
		// It is rounded so that the order does not depend on the last bits of a float.
		if score = math.Round(score*100) / 100; score > 0 {
			ranked[name] = candidate{path: name, score: score}
		}
	}
	return ranked, complete, nil
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
