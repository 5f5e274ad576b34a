package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

var pairClauses = []clause{
	{name: "S2.1 put, replace, delete", check: func(t *testing.T, s store.Store) {
		wantNone(t, s, "a", "k")
		commit(t, s, store.Batch{Puts: []store.Put{put("a", "k", "1"), put("b", "k", "2"), put("a", "l", "3")}})
		wantValue(t, s, "a", "k", "1")
		wantValue(t, s, "b", "k", "2")
		commit(t, s, store.Batch{Puts: []store.Put{put("a", "k", "4"), {Bucket: "b", Key: []byte("k"), Delete: true}}})
		wantValue(t, s, "a", "k", "4")
		wantNone(t, s, "b", "k")
		commit(t, s, store.Batch{Puts: []store.Put{{Bucket: "b", Key: []byte("k"), Delete: true}, {Bucket: "never", Key: []byte("k"), Delete: true}}})
	}},
	{name: "S2.2 the last put of a key in a batch wins", check: func(t *testing.T, s store.Store) {
		commit(t, s, store.Batch{Puts: []store.Put{put("a", "k", "1"), {Bucket: "a", Key: []byte("k"), Delete: true}, put("a", "k", "2")}})
		wantValue(t, s, "a", "k", "2")
	}},
	{name: "S2.3 values are copies", check: func(t *testing.T, s store.Store) {
		value := []byte("abc")
		commit(t, s, store.Batch{Puts: []store.Put{{Bucket: "a", Key: []byte("k"), Value: value}}})
		value[0] = 'x' // allowed: the ticket is done
		wantValue(t, s, "a", "k", "abc")
		got, _, _ := s.Get("a", []byte("k"))
		got[0] = 'y'
		wantValue(t, s, "a", "k", "abc")
	}},
	{name: "S2.4 an empty value exists", check: func(t *testing.T, s store.Store) {
		commit(t, s, store.Batch{Puts: []store.Put{put("a", "k", ""), {Bucket: "a", Key: []byte("n")}}})
		for _, key := range []string{"k", "n"} {
			if v, ok, err := s.Get("a", []byte(key)); len(v) != 0 || !ok || err != nil {
				t.Errorf("get %q: %q, %v, %v", key, v, ok, err)
			}
		}
	}},
	{name: "S2.5 names and keys have limits", check: func(t *testing.T, s store.Store) {
		long := strings.Repeat("k", 32768)
		commit(t, s, store.Batch{Puts: []store.Put{put("a", long, "1")}})
		wantValue(t, s, "a", long, "1")
		for _, p := range []store.Put{put("a", "", "1"), put("a", long+"k", "1"), put("", "k", "1"), put("journal", "k", "1"), put("store", "k", "1")} {
			refuse(t, s, store.Batch{Puts: []store.Put{p}}, store.ErrInvalid)
			_, _, err := s.Get(p.Bucket, p.Key)
			wantIs(t, err, store.ErrInvalid)
		}
		wantIs(t, s.Scan("journal", nil, nil, false, nil), store.ErrInvalid)
	}},
	{name: "S2.6 reads see committed state only", bubble: inBubble(func(t *testing.T, s store.Store) {
		commit(t, s, store.Batch{Puts: []store.Put{put("a", "k", "1")}, Appends: appends(run1, 1, 1)})
		ticket := s.Enqueue(store.Batch{Lazy: true, Puts: []store.Put{put("a", "k", "2")}, Appends: appends(run1, 2, 2)})
		wantValue(t, s, "a", "k", "1")
		wantLast(t, s, run1, 1)
		wantJournal(t, s, run1, 0, 1)
		<-ticket.Done()
		wantValue(t, s, "a", "k", "2")
		wantLast(t, s, run1, 2)
	})},
	{name: "S2.7 keys, values and bucket names may be binary", check: func(t *testing.T, s store.Store) {
		key, value := []byte{0, 0xff, 0}, []byte{0xff, 0, 1}
		commit(t, s, store.Batch{Puts: []store.Put{{Bucket: "\x00odd", Key: key, Value: value}}})
		if got, ok, err := s.Get("\x00odd", key); !ok || err != nil || !bytes.Equal(got, value) {
			t.Errorf("get: %x, %v, %v", got, ok, err)
		}
	}},
}

var scanClauses = []clause{
	{name: "S3.1 order, prefix, after, reverse", check: func(t *testing.T, s store.Store) {
		var puts []store.Put
		for _, key := range []string{"b", "a", "ab", "abc", "b\xff", "b\xff\xff", "c", "\xff", "\xff\xff", "bb"} {
			puts = append(puts, put("s", key, "v"+key))
		}
		commit(t, s, store.Batch{Puts: append(puts, put("other", "bz", ""))})
		for _, c := range []struct {
			prefix, after string
			reverse       bool
			want          []string
		}{
			{"", "", false, []string{"a", "ab", "abc", "b", "bb", "b\xff", "b\xff\xff", "c", "\xff", "\xff\xff"}},
			{"", "", true, []string{"\xff\xff", "\xff", "c", "b\xff\xff", "b\xff", "bb", "b", "abc", "ab", "a"}},
			{"b", "", false, []string{"b", "bb", "b\xff", "b\xff\xff"}},
			{"b", "", true, []string{"b\xff\xff", "b\xff", "bb", "b"}},
			{"\xff", "", true, []string{"\xff\xff", "\xff"}},
			{"b\xff", "", true, []string{"b\xff\xff", "b\xff"}},
			{"", "ab", false, []string{"abc", "b", "bb", "b\xff", "b\xff\xff", "c", "\xff", "\xff\xff"}},
			{"", "ab", true, []string{"a"}},
			{"", "aa", false, []string{"ab", "abc", "b", "bb", "b\xff", "b\xff\xff", "c", "\xff", "\xff\xff"}},
			{"", "aa", true, []string{"a"}},
			{"b", "b", false, []string{"bb", "b\xff", "b\xff\xff"}},
			{"b", "b\xff", true, []string{"bb", "b"}},
			{"b", "a", false, []string{"b", "bb", "b\xff", "b\xff\xff"}}, // begins before the prefix
			{"b", "c", false, nil},
			{"b", "c", true, []string{"b\xff\xff", "b\xff", "bb", "b"}},
			{"b", "a", true, nil},
			{"", "a", true, nil},
			{"", "\xff\xff", false, nil},
			{"zz", "", false, nil},
			{"zz", "", true, nil},
		} {
			t.Run(fmt.Sprintf("%q after %q reverse %v", c.prefix, c.after, c.reverse), func(t *testing.T) {
				var after []byte
				if c.after != "" {
					after = []byte(c.after)
				}
				var got []string
				err := s.Scan("s", []byte(c.prefix), after, c.reverse, func(k, v []byte) bool {
					if string(v) != "v"+string(k) {
						t.Errorf("key %q has value %q", k, v)
					}
					got = append(got, string(k))
					return true
				})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("keys (-want +got):\n%s", diff)
				}
			})
		}
	}},
	{name: "S3.2 false stops, an unknown bucket is empty", check: func(t *testing.T, s store.Store) {
		commit(t, s, store.Batch{Puts: []store.Put{put("s", "a", ""), put("s", "b", ""), put("s", "c", "")}})
		n := 0
		if err := s.Scan("s", nil, nil, false, func(_, _ []byte) bool { n++; return n < 2 }); err != nil || n != 2 {
			t.Errorf("scan: %d calls, %v", n, err)
		}
		if err := s.Scan("t", nil, nil, true, func(_, _ []byte) bool { n++; return true }); err != nil || n != 2 {
			t.Errorf("scan: %d calls, %v", n, err)
		}
	}},
	{name: "S3.3 a long scan is complete in both directions, and fn may write", check: func(t *testing.T, s store.Store) {
		const n = 1300
		var b store.Batch
		for i := range n {
			b.Puts = append(b.Puts, put("s", fmt.Sprintf("k%05d", i), "v"))
		}
		commit(t, s, b)
		for _, reverse := range []bool{false, true} {
			i := 0
			err := s.Scan("s", []byte("k"), nil, reverse, func(k, _ []byte) bool {
				want := fmt.Sprintf("k%05d", i)
				if reverse {
					want = fmt.Sprintf("k%05d", n-1-i)
				}
				if string(k) != want {
					t.Fatalf("key %q, want %q", k, want)
				}
				if i%600 == 0 {
					commit(t, s, store.Batch{Puts: []store.Put{put("s", "other", "v")}})
				}
				i++
				return true
			})
			if err != nil || i != n {
				t.Errorf("reverse %v: %d pairs, %v", reverse, i, err)
			}
		}
	}},
}

func wantIs(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}
