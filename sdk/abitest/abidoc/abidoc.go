// Package abidoc reads the tables of sdk/ABI.md for tests that compare them with the
// code. A table belongs to the numbered clause that contains it.
package abidoc

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Table returns the cells of the table in a clause, "A8.1", without its header and
// without backticks. A clause without a table fails the test.
func Table(t testing.TB, clause string) [][]string {
	t.Helper()
	section, number, ok := strings.Cut(clause, ".")
	if !ok {
		t.Fatalf("abidoc: invalid clause %q", clause)
	}
	in, at := false, false
	var rows [][]string
	for line := range strings.Lines(page(t)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "## "):
			in, at = strings.HasPrefix(line, "## "+section+" "), false
		case in && startsClause(line):
			at = strings.HasPrefix(line, number+". ")
		case at && strings.HasPrefix(line, "|"):
			rows = append(rows, cells(line))
		}
	}
	if len(rows) < 3 {
		t.Fatalf("abidoc: clause %s of sdk/ABI.md has no table", clause)
	}
	return rows[2:] // after the header and the line below it
}

// Map returns a table with two columns, by the first.
func Map(t testing.TB, clause string) map[string]string {
	t.Helper()
	m := map[string]string{}
	for _, row := range Table(t, clause) {
		if len(row) < 2 {
			t.Fatalf("abidoc: clause %s: a row of %d cells: %q", clause, len(row), row)
		}
		if _, twice := m[row[0]]; twice {
			t.Errorf("abidoc: clause %s has two rows %q", clause, row[0])
		}
		m[row[0]] = row[1]
	}
	return m
}

// Want compares rows of a clause's table, by their first cell, with the values in the
// code.
func Want(t testing.TB, clause string, want map[string]string) {
	t.Helper()
	have := Map(t, clause)
	for what, value := range want {
		if have[what] != value {
			t.Errorf("sdk/ABI.md %s: %s is %q, the code has %q", clause, what, have[what], value)
		}
	}
}

// Bytes returns a size as it is written in ABI.md: "64 MiB", "4 KiB", "100 bytes".
func Bytes[N int | int64](n N) string {
	switch {
	case n >= 1<<30 && n%(1<<30) == 0:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return Count(n) + " bytes"
}

// Count returns a number as it is written in ABI.md: "10,000".
func Count[N int | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// page returns the text of sdk/ABI.md of the module that contains the working directory
// of the test. The path of the source file cannot be used, because -trimpath removes it.
func page(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "sdk", "ABI.md"))
		if err == nil {
			return string(text)
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("abidoc: no folder above the working directory has sdk/ABI.md")
		}
		dir = up
	}
}

// startsClause reports whether a line begins with a number and a dot.
func startsClause(line string) bool {
	number, _, ok := strings.Cut(line, ". ")
	_, err := strconv.Atoi(number)
	return ok && err == nil
}

// cells splits a row.
func cells(line string) []string {
	parts := strings.Split(strings.Trim(line, "|"), "|")
	for i, p := range parts {
		parts[i] = strings.ReplaceAll(strings.TrimSpace(p), "`", "")
	}
	return parts
}
