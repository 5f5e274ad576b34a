package bench

import (
	"fmt"
	"io"
	"strconv"
)

// The widths fit what the rows hold, so that each can be printed as soon as it
// is measured; a measurement takes seconds.
const line = "%-16s %9s %9s %-8s %9s %7s %9s %9s  %s\n"

func writeTable(w io.Writer, rows func(func(Row, error) bool)) (failed error) {
	if _, err := fmt.Fprintf(w, line, "", "median", "p99", "", "beside", "ratio", "must", "aim", ""); err != nil {
		return err
	}
	rows(func(r Row, err error) bool {
		if failed = err; failed == nil {
			failed = r.print(w)
		}
		return failed == nil
	})
	return failed
}

func (r Row) print(w io.Writer) error {
	if _, err := fmt.Fprintf(w, line, r.Name, number(r.Median), number(r.P99), r.Unit, number(r.ReferenceMedian),
		number(r.Ratio), number(r.Must), number(r.Aim), r.Verdict); err != nil {
		return err
	}
	text := r.What
	if r.Reference != "" {
		text += "; beside " + r.Reference
	}
	if r.Note != "" {
		text += "; " + r.Note
	}
	_, err := fmt.Fprintf(w, "  %s\n", text)
	return err
}

func number(v float64) string {
	if v == 0 {
		return "-"
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
