package invoice

import "testing"

func TestTotal(t *testing.T) {
	lines := []Line{{"pen", 3, 150}, {"ink", 1, 999}}
	for _, test := range []struct{ discount, want int }{
		{0, 1449},
		{10, 1304},
		{50, 725}, // 724.5, and half a cent is rounded up
	} {
		if got := Total(lines, test.discount); got != test.want {
			t.Errorf("Total with %d%% off = %d, want %d", test.discount, got, test.want)
		}
	}
}

func TestFormat(t *testing.T) {
	if got := Format(1304); got != "13.04 EUR" {
		t.Errorf("Format = %q", got)
	}
}
