package codeindex

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
)

// MaxWords limits the words of a query.
const MaxWords = 64

// maxTerms limits the words that one of them is split into, because the time that
// FTS5 takes grows with their square.
const maxTerms = 8

// A Text is a file with a text.
type Text struct {
	Path  string
	Words uint64 // bit i is set if it has word i of the query
}

// A Result is all files with a text, and which words of a query they have.
type Result struct {
	Texts  []Text // sorted by path
	Counts []int  // number of files with each word of the query
}

// Search returns the files, and which have words that begin with the given ones. It finds
// what the last [Index.Refresh] has seen, and refreshes an index that never was.
func (x *Index) Search(ctx context.Context, words []string) (result Result, err error) {
	if len(words) > MaxWords {
		return Result{}, fmt.Errorf("search the code index: %d words: want at most %d", len(words), MaxWords)
	}
	err = x.recovered(ctx, func() error {
		if !x.fresh {
			if _, _, err := x.Refresh(ctx); err != nil {
				return err
			}
		}
		result, err = x.search(ctx, words)
		return err
	})
	if err != nil {
		return Result{}, fmt.Errorf("search the code index of %q: %w", x.dir, err)
	}
	return result, nil
}

// search reads in one transaction, so that words and snapshot fit together.
func (x *Index) search(ctx context.Context, words []string) (r Result, err error) {
	if _, err := x.conn.ExecContext(ctx, "BEGIN"); err != nil {
		return Result{}, err
	}
	// It has only read: nothing is lost if it fails.
	defer func() { _, _ = x.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") }()
	if err := x.load(ctx); err != nil {
		return Result{}, err
	}
	r = Result{Counts: make([]int, len(words))}
	found := map[int64]uint64{}
	// One text is read faster than a row for each of many files.
	match, err := x.conn.PrepareContext(ctx, "SELECT group_concat(rowid) FROM words WHERE words MATCH ?")
	if err != nil {
		return Result{}, err
	}
	defer match.Close()
	for i, word := range words {
		expression := query(word)
		if expression == "" {
			continue
		}
		var list sql.NullString
		if err := match.QueryRowContext(ctx, expression).Scan(&list); err != nil {
			return Result{}, err
		}
		for number := range strings.SplitSeq(list.String, ",") {
			if doc, err := strconv.ParseInt(number, 10, 64); err == nil {
				found[doc] |= 1 << i
			}
		}
	}
	for i := range x.snap.files {
		f := &x.snap.files[i]
		if f.doc == 0 {
			continue
		}
		words := found[f.doc]
		r.Texts = append(r.Texts, Text{f.path, words})
		for i := range r.Counts {
			r.Counts[i] += int(words >> i & 1)
		}
	}
	return r, nil
}

// query returns the expression of FTS5 for the files with words that begin with all
// words of a text, or the first of many, "" if it has none. It quotes them, and they have letters, digits
// and underscores only: nothing of a text is syntax.
func query(text string) string {
	var terms []string
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !isWord(r) }) {
		word = strings.TrimLeft(word, "_")
		if len(word) >= minWord && len(word) <= maxWord && len(terms) < maxTerms {
			terms = append(terms, `"`+word+`"*`)
		}
	}
	return strings.Join(terms, " ")
}
