package output

import (
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
)

const (
	gap        = 2  // blanks between columns
	leastWidth = 8  // columns are not made narrower, as long as that is enough
	leastLast  = 20 // characters of a last column that is wrapped
)

// Filled returns a table, whose first row is the header, without columns that have no cell.
func Filled(rows []Row) []Row {
	if len(rows) < 2 {
		return rows
	}
	var keep []int
	for i := range widths(rows) {
		for _, r := range rows[1:] {
			if i < len(r) && r[i] != "" {
				keep = append(keep, i)
				break
			}
		}
	}
	out := make([]Row, len(rows))
	for n, r := range rows {
		for _, i := range keep {
			if i < len(r) {
				out[n] = append(out[n], r[i])
			}
		}
	}
	return out
}

// Narrow empties columns of a table, the first one of columns first, until its rows fit into width: a table whose
// less needed columns are gone says more than one in which all cells are cut. columns are counted from 0.
func Narrow(rows []Row, width int, columns ...int) []Row {
	for _, column := range columns {
		wide := widths(Filled(rows))
		total := gap * max(0, len(wide)-1)
		for _, w := range wide {
			total += w
		}
		if total <= width {
			break
		}
		narrower := make([]Row, len(rows))
		for n, r := range rows {
			if narrower[n] = slices.Clone(r); n > 0 && column < len(r) {
				narrower[n][column] = ""
			}
		}
		rows = narrower
	}
	return rows
}

// Fit cuts the longest cells of a table, so that no row is longer than width. Widths are given up by
// the widest columns first.
func Fit(rows []Row, width int) []Row {
	wide := widths(rows)
	left := width - gap*(len(wide)-1)
	limit, least := 0, leastWidth
	for _, w := range wide {
		limit = max(limit, w)
	}
	total := func() (n int) {
		for _, w := range wide {
			n += min(w, limit)
		}
		return n
	}
	if total() <= left {
		return rows
	}
	if len(wide)*least > left {
		least = 1
	}
	for limit > least && total() > left {
		limit--
	}
	spare := max(0, left-total())
	out := make([]Row, len(rows))
	for i, w := range wide {
		most := min(w, limit)
		if more := min(spare, w-most); more > 0 {
			most, spare = most+more, spare-more
		}
		for n, r := range rows {
			if i < len(r) {
				out[n] = append(out[n], cutColoured(r[i], most))
			}
		}
	}
	return out
}

// WrapLast breaks the last cell of each row at words, if the row is longer than width. The further
// lines are rows of their own. Where the other columns leave no space for it, their long cells are cut.
func WrapLast(rows []Row, width int) []Row {
	wide := widths(rows)
	last := len(wide) - 1
	if last < 0 {
		return rows
	}
	left := width - gap*last
	for _, w := range wide[:max(0, last)] {
		left -= w
	}
	if wide[last] <= left {
		return rows
	}
	if left < leastLast {
		if last == 0 {
			return rows
		}
		rows, left = fitBefore(rows, last, width-gap-leastLast), leastLast
	}
	var out []Row
	for _, r := range rows {
		if len(r) <= last || Width(r[last]) <= left {
			out = append(out, r)
			continue
		}
		for n, line := range FillText(r[last], left) {
			row := Row{}
			for i := range last {
				cell := r[i]
				if n > 0 {
					cell = ""
				}
				row = append(row, cell)
			}
			out = append(out, append(row, line))
		}
	}
	return out
}

// fitBefore returns the rows with the cells before a column cut, so that they take at most so many columns of the terminal.
func fitBefore(rows []Row, column, width int) []Row {
	before := make([]Row, len(rows))
	for i, r := range rows {
		before[i] = r[:min(column, len(r))]
	}
	out := slices.Clone(rows)
	for i, r := range Fit(before, width) {
		out[i] = append(slices.Clone(r), rows[i][len(r):]...)
	}
	return out
}

// widths returns the width of each column.
func widths(rows []Row) (list []int) {
	for _, r := range rows {
		for i, cell := range r {
			if i == len(list) {
				list = append(list, 0)
			}
			list[i] = max(list[i], Width(cell))
		}
	}
	return list
}

// cutColoured is [Cut] for text that may have colours.
func cutColoured(text termtext.Text, n int) termtext.Text {
	if Width(text) <= n {
		return text
	}
	var b strings.Builder
	seen, escape := 0, false
	for _, r := range string(text) {
		switch {
		case r == '\x1b' || escape:
			escape = r != 'm'
			b.WriteRune(r)
			continue
		case seen < n-1:
			b.WriteRune(r)
		case seen == n-1:
			b.WriteRune('…')
		}
		seen++
	}
	return termtext.Text(b.String())
}

// CutLines cuts each line of a text that is longer than width. The text may have colours.
func CutLines(text termtext.Text, width int) termtext.Text {
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		lines[i] = string(cutColoured(termtext.Text(line), width))
	}
	return termtext.Text(strings.Join(lines, "\n"))
}

// FillText is [Fill] for text that may have one colour as a whole. It breaks a word that is longer than a line.
func FillText(text termtext.Text, width int) (lines []termtext.Text) {
	s, begin, end := string(text), "", ""
	if strings.HasPrefix(s, "\x1b[") && strings.HasSuffix(s, "\x1b[0m") {
		at := strings.IndexByte(s, 'm') + 1
		begin, s, end = s[:at], s[at:len(s)-len("\x1b[0m")], "\x1b[0m"
	}
	for _, line := range Fill("", s, 0, width) {
		for r := []rune(line); ; r = r[width:] { // a word that is longer than a line
			lines = append(lines, termtext.Text(begin+string(r[:min(len(r), width)])+end))
			if len(r) <= width {
				break
			}
		}
	}
	return lines
}
