package share_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/internal/share"
)

// TestBeyond has lists of owners, oldest first: a capital letter stays, p is a person.
func TestBeyond(t *testing.T) {
	for _, tt := range []struct {
		list  string
		bound int64
		gone  string // positions
	}{
		{"aaaa", 4, ""},
		{"aaaa", 2, "0 1"},
		{"ppaaaa", 4, "2 3"},
		{"ppaaaa", 2, "0 2 3 4"}, // more than half is the persons'
		{"pppppp", 2, "0 1 2 3"},
		{"abbb", 2, "1 2"},
		{"pbA", 2, "1"},
		{"ppAAA", 4, ""},
		{"pppAAA", 4, "0"},
		{"Ap", 0, "1"},
	} {
		var list []share.Item[int]
		for i, r := range tt.list {
			owner := strings.ToLower(string(r))
			if owner == "p" {
				owner = ""
			}
			list = append(list, share.Item[int]{Value: i, Owner: owner, Size: 1, Stays: r < 'a'})
		}
		gone := share.Beyond(list, tt.bound, tt.bound/2)
		slices.Sort(gone)
		if got := strings.Trim(fmt.Sprint(gone), "[]"); got != tt.gone {
			t.Errorf("%s at most %d: gone %s, want %s", tt.list, tt.bound, got, tt.gone)
		}
	}
}
