package codeindex

import (
	"unicode"
	"unicode/utf8"
)

// Limits of the words that are indexed, in bytes. Shorter ones are in most files,
// longer ones are data.
const (
	minWord = 3
	maxWord = 64
)

// A splitter finds the different words of texts. Names count as words with their
// underscores. The end of a name from each of its parts on counts as well: searches
// look for the beginnings of words, so they find "getUserName" by "user".
type splitter struct {
	out   []byte // the words of the current text, each with a space
	seen  []slot // hash table, its length is a power of two
	round uint32 // marks the slots of the current text
	count int
	word  []byte // in lower case
	parts []int  // where the parts of word begin
}

type slot struct {
	round      uint32
	hash       uint32
	start, end int32 // in out
}

// split returns the different words of a text, in lower case and separated by spaces.
// They are valid until the next call.
func (s *splitter) split(text []byte) []byte {
	s.out, s.count = s.out[:0], 0
	if s.round++; s.round == 0 || s.seen == nil {
		s.seen, s.round = make([]slot, 1<<12), 1
	}
	for i := 0; i < len(text); {
		s.word, s.parts = s.word[:0], s.parts[:0]
		small := false // the previous character was a lower-case letter or a digit
		upper := false // it was an upper-case letter
		for i < len(text) {
			c := text[i]
			switch {
			case c >= 'a' && c <= 'z':
				if upper && len(s.word) > 1 { // the last capital of "HTTPServer" begins a part
					s.parts = append(s.parts, len(s.word)-1)
				}
				s.word = append(s.word, c)
				small, upper = true, false
			case c >= '0' && c <= '9':
				s.word = append(s.word, c)
				small, upper = true, false
			case c >= 'A' && c <= 'Z':
				if small {
					s.parts = append(s.parts, len(s.word))
				}
				s.word = append(s.word, c+'a'-'A')
				small, upper = false, true
			case c == '_':
				s.word = append(s.word, c)
				s.parts = append(s.parts, len(s.word))
				small, upper = false, false
			case c < utf8.RuneSelf:
				goto end
			default:
				r, n := utf8.DecodeRune(text[i:])
				if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
					i += n - 1 // of the character; its last byte is skipped below
					goto end
				}
				if small && unicode.IsUpper(r) {
					s.parts = append(s.parts, len(s.word))
				}
				s.word = utf8.AppendRune(s.word, unicode.ToLower(r))
				small, upper = unicode.IsLower(r) || unicode.IsDigit(r), false
				i += n - 1
			}
			i++
		}
	end:
		i++
		s.end()
	}
	return s.out
}

// end adds the current word, and its ends from each part on.
func (s *splitter) end() {
	if len(s.word) < minWord {
		return
	}
	first := 0
	for first < len(s.word) && s.word[first] == '_' {
		first++
	}
	s.add(s.word[first:])
	for _, at := range s.parts {
		if at > first {
			s.add(s.word[at:])
		}
	}
}

// add adds a word that the text did not have before.
func (s *splitter) add(word []byte) {
	if len(word) < minWord || len(word) > maxWord {
		return
	}
	h := uint32(2166136261)
	for _, c := range word {
		h = (h ^ uint32(c)) * 16777619
	}
	mask := uint32(len(s.seen) - 1)
	i := (h ^ h>>15) & mask
	for ; s.seen[i].round == s.round; i = (i + 1) & mask {
		if e := &s.seen[i]; e.hash == h && string(s.out[e.start:e.end]) == string(word) {
			return
		}
	}
	start := len(s.out)
	s.out = append(s.out, word...)
	s.seen[i] = slot{s.round, h, int32(start), int32(len(s.out))}
	s.out = append(s.out, ' ')
	if s.count++; s.count > len(s.seen)/2 {
		s.grow()
	}
}

func (s *splitter) grow() {
	old := s.seen
	s.seen = make([]slot, 2*len(old))
	mask := uint32(len(s.seen) - 1)
	for _, e := range old {
		if e.round != s.round {
			continue
		}
		i := (e.hash ^ e.hash>>15) & mask
		for s.seen[i].round == s.round {
			i = (i + 1) & mask
		}
		s.seen[i] = e
	}
}

// isWord reports whether a character is part of words.
func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
