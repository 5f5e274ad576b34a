package data_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// The original's data/list has orderBy, and filters with $gt, $gte, $lt, $lte and $in.
func TestListFiltersByConditions(t *testing.T) {
	b := open(t)
	for i, data := range []string{
		`{"age": 9, "name": "b"}`, `{"age": 10, "name": "a"}`, `{"age": "10", "name": "c"}`, `{"name": "d"}`, `{"age": 12345678901234567890123, "tags": {"x": 1}}`, `{"age": 12345678901234567890124}`,
		`{"n": 1.0}`, `{"n": 10e-1}`, `{"n": "1"}`,
	} {
		b.must(fmt.Sprint(i), "data/create", fmt.Sprintf(`{"collection": "people", "id": "p%d", "data": %s}`, i, data))
	}
	for filter, want := range map[string]string{
		`{"age": {"$gt": 9}}`:                        "p1 p4 p5",
		`{"age": {"$gte": 9, "$lt": 1e2}}`:           "p0 p1",
		`{"age": {"$lte": 10.0}}`:                    "p0 p1",
		`{"age": 9.0}`:                               "p0",
		`{"age": {"$in": [1e1]}}`:                    "p1",
		`{"n": 1}`:                                   "p6 p7",
		`{"n": {"$in": [2, 1]}}`:                     "p6 p7",
		`{"tags": {"x": 1.0}}`:                       "p4",
		`{"age": {"$gt": 12345678901234567890123}}`:  "p5",
		`{"age": {"$gte": "10"}}`:                    "p2",
		`{"name": {"$in": ["a", "d", "x"]}}`:         "p1 p3",
		`{"name": {"$gt": "b"}, "age": {"$gt": ""}}`: "p2",
		`{"tags": {"x": 1}}`:                         "p4",
		`{"id": {"$in": ["p5"]}}`:                    "p5",
		`{"revision": {"$gt": 1}}`:                   "",
	} {
		a := b.must("", "data/list", `{"collection": "people", "filter": `+filter+`}`)
		if got := ids(a); got != want {
			t.Errorf("%s: %s, want %s", filter, got, want)
		}
	}
	for filter, want := range map[string]string{
		`{"$or": [{"age": 1}]}`: `unknown operator "$or" in place of a field`, `{"age": {"at": {"$gt": 9}}}`: `operator "$gt" below the value`,
		`{"age": {"$gtt": 9}}`: `field "age": unknown operator "$gtt"`, `{"age": {"$in": 9}}`: "$in needs a list", `{"age": {"$lt": null}}`: "$lt needs a number or a text",
		`{"age": {"$gt": 1, "x": 2}}`: `unknown operator "x"`, `{"tags": {"x": [{"$or": []}]}}`: `operator "$or" below the value`,
		`{"age": {"$or": [1]}}`: `unknown operator "$or"`, `{"age": {"$in": [{"$gt": 1}]}}`: `operator "$gt" below the value`,
	} {
		_, err := b.try("", "data/list", `{"collection": "people", "filter": `+filter+`}`)
		if abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), want) || !strings.Contains(abi.As(err).Hint, "$gt $gte $in $lt $lte") {
			t.Errorf("%s: %v", filter, err)
		}
	}
	if a := b.must("", "data/read", `{"collection": "people", "filter": {"age": {"$gt": 9, "$lt": 11}}}`); a.Document.ID != "p1" {
		t.Errorf("data/read answered %+v", a)
	}
}

func ids(a answer) string {
	var list []string
	for _, d := range a.Items {
		list = append(list, d.ID)
	}
	return strings.Join(list, " ")
}

func TestListOrders(t *testing.T) {
	b := open(t)
	for i, data := range []string{`{"n": 2, "s": "b"}`, `{"n": 10, "s": "b"}`, `{"s": "a"}`, `{"n": 2, "s": "a"}`, `{"n": null}`} {
		b.must(fmt.Sprint(i), "data/create", fmt.Sprintf(`{"collection": "things", "id": "t%d", "data": %s}`, i, data))
	}
	for params, want := range map[string]string{
		`"orderBy": [{"field": "n"}]`:                                              "t4 t0 t3 t1 t2",
		`"orderBy": [{"field": "n", "direction": "desc"}]`:                         "t1 t0 t3 t4 t2",
		`"orderBy": [{"field": "s"}, {"field": "n"}]`:                              "t3 t2 t0 t1 t4",
		`"orderBy": [{"field": "s", "direction": "desc"}], "filter": {"n": 2}`:     "t0 t3",
		`"orderBy": [{"field": "id", "direction": "desc"}]`:                        "t4 t3 t2 t1 t0",
		`"orderBy": [{"field": "n"}], "reverse": true`:                             "t2 t1 t3 t0 t4",
		`"orderBy": [{"field": "n"}], "after": "t4", "filter": {"n": {"$gte": 0}}`: "",
	} {
		a, err := b.try("", "data/list", `{"collection": "things", `+params+`}`)
		if want == "" {
			if abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), `"t4"`) {
				t.Errorf("%s: %v", params, err)
			}
			continue
		}
		if got := ids(a); err != nil || got != want {
			t.Errorf("%s: %s, want %s (%v)", params, got, want, err)
		}
		// The same page by page.
		var pages []string
		for after := ""; ; {
			page := b.must("", "data/list", fmt.Sprintf(`{"collection": "things", "limit": 2, %s%s}`, params, after))
			pages = append(pages, ids(page))
			if page.Next == "" {
				break
			}
			after = fmt.Sprintf(`, "after": %q`, page.Next)
		}
		if got := strings.Join(pages, " "); got != want {
			t.Errorf("%s in pages: %v, want %s", params, pages, want)
		}
	}
	// Definitions too.
	a := b.must("", "data/list", `{"collection": "sentinels", "orderBy": [{"field": "name", "direction": "desc"}]}`)
	if got := ids(a); got != "ship-it build-fix" {
		t.Errorf("sentinels: %s", got)
	}
	_, err := b.try("", "data/list", `{"collection": "things", "orderBy": [{"field": "n", "direction": "down"}]}`)
	if abi.CodeOf(err) != abi.BadFields {
		t.Errorf("direction down: %v", err)
	}
}

// TestQueriesAreBounded: a query compares each document with its whole filter and keeps a
// value for each field that it sorts by, so both have a limit.
func TestQueriesAreBounded(t *testing.T) {
	b := open(t)
	values := func(n int) string { return strings.TrimSuffix(strings.Repeat(`"z",`, n), ",") }
	fields := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"f%d": 1`, i))
		}
		return strings.Join(all, ", ")
	}
	orders := func(n int) string {
		return strings.TrimSuffix(strings.Repeat(`{"field": "n"},`, n), ",")
	}
	for params, want := range map[string]string{
		`"filter": {"n": {"$in": [` + values(1000) + `]}}`: "",
		`"filter": {"n": {"$in": [` + values(1001) + `]}}`: "$in has 1001 values, at most 1000 are compared",
		`"filter": {` + fields(64) + `}`:                   "",
		`"filter": {` + fields(65) + `}`:                   "65 fields, at most 64 are compared",
		`"orderBy": [` + orders(8) + `]`:                   "",
		`"orderBy": [` + orders(9) + `]`:                   "orderBy has 9 fields, at most 8 sort",
	} {
		_, err := b.try("", "data/list", `{"collection": "things", `+params+`}`)
		switch {
		case want == "" && err != nil:
			t.Errorf("%.40s: %v", params, err)
		case want != "" && (abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), want)):
			t.Errorf("%.40s: %v, want %q", params, err, want)
		}
	}
}
