package cron

import (
	"strconv"
	"strings"
)

// weekdayNames are the names from 0, Sunday.
var weekdayNames = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// weekdays rewrites a weekday field for the library, which accepts 0 to 6 but
// neither 7 nor ranges that end with Sunday. It leaves parts that it cannot parse
// unchanged, for the library to refuse.
func weekdays(field string) string {
	parts := strings.Split(field, ",")
	for i, part := range parts {
		text, stepText, stepped := strings.Cut(part, "/")
		firstText, lastText, ranged := strings.Cut(text, "-")
		first, ok := weekday(firstText)
		last, ok2 := first, true
		if ranged {
			last, ok2 = weekday(lastText)
			if last == 0 && first > 0 {
				last = 7
			}
		}
		step := 1
		if stepped {
			n, err := strconv.Atoi(stepText)
			if err != nil || n < 1 || n > 7 {
				continue
			}
			step = n
		}
		if !ok || !ok2 || first > last {
			continue
		}
		if stepped && !ranged {
			last = max(first, 6) // "2/2" is from Tuesday to the end of the week
		}
		var days []string
		for d := first; d <= last; d += step {
			days = append(days, strconv.Itoa(d%7))
		}
		parts[i] = strings.Join(days, ",")
	}
	return strings.Join(parts, ",")
}

// weekday parses one day, 0 to 7.
func weekday(text string) (int, bool) {
	for i, name := range weekdayNames {
		if strings.EqualFold(text, name) {
			return i, true
		}
	}
	// Zeros before the number are usual in all fields, signs are not.
	n, err := strconv.ParseUint(text, 10, 8)
	return int(n), err == nil && n <= 7
}
