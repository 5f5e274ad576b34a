package run

import "testing"

func TestFieldOrder(t *testing.T) {
	for _, pair := range [][2]string{{"then", "else"}, {"branches.2", "branches.10"}, {"branches.0", "branches.1"}} {
		if compareFields(pair[0], pair[1]) >= 0 || compareFields(pair[1], pair[0]) <= 0 {
			t.Errorf("%q is not before %q", pair[0], pair[1])
		}
	}
}
