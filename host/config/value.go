package config

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a span of time, written "90s", "1h30m" or "30d".
type Duration time.Duration

// Std returns d as the standard library has it.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String writes whole days as days.
func (d Duration) String() string {
	const day = 24 * time.Hour
	if t := time.Duration(d); t >= day && t%day == 0 {
		return strconv.Itoa(int(t/day)) + "d"
	}
	text := time.Duration(d).String()
	for _, tail := range []string{"m0s", "h0m"} { // 1h0m0s reads as 1h
		if strings.HasSuffix(text, tail) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// MarshalText writes what UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a duration; it cannot be negative.
func (d *Duration) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return fmt.Errorf("invalid duration %q: want one such as 90s, 1h30m or 30d", s)
		}
		*d = Duration(time.Duration(n) * 24 * time.Hour)
		return nil
	}
	t, err := time.ParseDuration(s)
	if err != nil || t < 0 {
		return fmt.Errorf("invalid duration %q: want one such as 90s, 1h30m or 30d", s)
	}
	*d = Duration(t)
	return nil
}

// Size is a number of bytes, written "64MB" or "2GB"; units are powers of 1024.
type Size int64

var units = []struct {
	name  string
	bytes int64
}{{"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}, {"B", 1}}

// String writes the largest unit that divides s.
func (s Size) String() string {
	for _, u := range units {
		if int64(s)%u.bytes == 0 && (s != 0 || u.bytes == 1) {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// MarshalText writes what UnmarshalText reads.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a size. A number without a unit is bytes.
func (s *Size) UnmarshalText(text []byte) error {
	t := strings.ToUpper(strings.TrimSpace(string(text)))
	for _, u := range units {
		digits, ok := strings.CutSuffix(t, u.name)
		if !ok && u.bytes != 1 {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/u.bytes {
			return fmt.Errorf("invalid size %q: want one such as 512KB, 64MB or 2GB", text)
		}
		*s = Size(n * u.bytes)
		return nil
	}
	return nil
}

// UnmarshalJSON accepts a bare number of bytes too.
func (s *Size) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	return s.UnmarshalText([]byte(text))
}
