package retry_test

import (
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/retry"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/abitest/abidoc"
)

// TestCodeTable compares the column "another attempt" of clause A5.2 with the
// classification of errors.
func TestCodeTable(t *testing.T) {
	table := abidoc.Map(t, "A5.2")
	for _, code := range abi.Codes() {
		plain := retry.ClassifyError(abi.New(code, "it went wrong"))
		network := retry.ClassifyError(abi.New(code, "connect ECONNREFUSED"))
		want := "yes"
		switch {
		case plain.Permanent:
			want = "no"
		case plain.Category != network.Category:
			want = "by message"
		}
		if table[string(code)] != want {
			t.Errorf("sdk/ABI.md A5.2: %s is %q, classified it is %q (%+v, %+v)", code, table[string(code)], want, plain, network)
		}
	}
}
