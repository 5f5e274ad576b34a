package egress

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sdk/abitest/abidoc"
)

// TestLimitTable compares the limits of requests with clause A8.6.
func TestLimitTable(t *testing.T) {
	o := Options{}.withDefaults()
	want := map[string]string{
		"URL":                                     abidoc.Bytes(maxURL),
		"request headers":                         fmt.Sprintf("%d, %s together", maxHeaders, abidoc.Bytes(maxHeaderBytes)),
		"places for secrets":                      abidoc.Count(maxSecrets),
		"body with its secrets in place":          abidoc.Bytes(maxFilled),
		"addresses of a host that are tried":      abidoc.Count(maxAddresses),
		"connecting, with the lookup of the name": fmt.Sprintf("%d s, then unavailable", dialTime/time.Second),
		"redirects":                               abidoc.Count(o.MaxRedirects),
		"whole call, if timeoutMs does not say":   fmt.Sprintf("%d s", o.Timeout/time.Second),
		"timeoutMs":                               fmt.Sprintf("%d minutes", maxTimeout/time.Minute),
		"response headers":                        fmt.Sprintf("%s as received, %s as JSON", abidoc.Bytes(maxHeader), abidoc.Bytes(maxHeaderText)),
		"response body":                           fmt.Sprintf("%s, decompressed, and what fits into an answer of %s with the headers; the rest is cut and truncated is set", abidoc.Bytes(o.MaxBody), abidoc.Bytes(maxAnswer)),
		"decompression":                           fmt.Sprintf("%d to 1", maxRatio),
	}
	if diff := cmp.Diff(want, abidoc.Map(t, "A8.6")); diff != "" {
		t.Errorf("sdk/ABI.md A8.6 (-code +table):\n%s", diff)
	}
}

// TestAddressTable compares the addresses that are not public with clause A6.18.
func TestAddressTable(t *testing.T) {
	rows := abidoc.Table(t, "A6.18")
	if len(rows) != 1 || len(rows[0]) != 2 {
		t.Fatalf("sdk/ABI.md A6.18: %q", rows)
	}
	if diff := cmp.Diff(join(notPublic), rows[0][0]); diff != "" {
		t.Errorf("sdk/ABI.md A6.18, IPv4 (-code +table):\n%s", diff)
	}
	if diff := cmp.Diff(fmt.Sprintf("all outside %s; inside it %s", global6, join(notPublic6)), rows[0][1]); diff != "" {
		t.Errorf("sdk/ABI.md A6.18, IPv6 (-code +table):\n%s", diff)
	}
}

// join lists networks as the table does.
func join(list []netip.Prefix) string {
	texts := make([]string, len(list))
	for i, p := range list {
		texts[i] = p.String()
	}
	return strings.Join(texts, ", ")
}
