package egress_test

import (
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/plugin/egress"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

func TestAllowed(t *testing.T) {
	for _, test := range []struct {
		entry, url string
		want       bool
	}{
		{"api.example.com", "https://api.example.com/x", true},
		{"api.example.com", "http://api.example.com", true},
		{"api.example.com", "https://API.Example.COM./x", true},
		{"API.Example.com.", "https://api.example.com:443/", true},
		{"api.example.com", "https://api.example.com:/", true},
		{"api.example.com", "https://api.example.com:80/", false},
		{"api.example.com", "http://api.example.com:443/", false},
		{"api.example.com", "https://api.example.com:8443/", false},
		{"api.example.com:8443", "https://api.example.com:8443/", true},
		{"api.example.com:8443", "https://api.example.com/", false},
		{"api.example.com:443", "https://api.example.com/", true},
		{"api.example.com:443", "http://api.example.com/", false},
		{"api.example.com", "https://example.com/", false},
		{"api.example.com", "https://api.example.com.evil.test/", false},
		{"api.example.com", "https://evilapi.example.com/", false},
		{"api.example.com", "https://a.api.example.com/", false},
		{"*.example.com", "https://a.example.com/", true},
		{"*.example.com", "https://a.b.example.com/", true},
		{"*.example.com", "https://example.com/", false},
		{"*.example.com", "https://evilexample.com/", false},
		{"*.example.com", "https://example.com.evil.test/", false},
		{"*.example.com", "https://a.example.com:8443/", false},
		{"*.example.com:8443", "https://a.example.com:8443/", true},
		{"bücher.example", "https://xn--bcher-kva.example/", true},
		{"xn--bcher-kva.example", "https://BÜCHER.example/", true},
		{"xn--bcher-kva.example", "https://bu\u0308cher.example/", true},
		{"xn--bcher-kva.example", "https://b%C3%BCcher.example/", true},
		{"*.bücher.example", "https://a.xn--bcher-kva.example/", true},
		{"apple.com", "https://аpple.com/", false}, // Cyrillic
		{"93.184.216.34", "https://93.184.216.34/", true},
		{"93.184.216.34:8443", "https://93.184.216.34:8443/", true},
		{"93.184.216.34", "https://93.184.216.35/", false},
		{"[2606:4700::1111]", "https://[2606:4700:0::1111]/", true},
		{"[2606:4700::1111]:99", "https://[2606:4700::1111]:99/", true},
		{"[2606:4700::1111]", "https://[2606:4700::1112]/", false},
		{"a_b.example.com", "https://a_b.example.com/", true},
	} {
		host, got, err := egress.Allowed([]string{test.entry}, test.url)
		if err != nil || got != test.want {
			t.Errorf("%q under %q (as %q): %v, %v; want %v", test.url, test.entry, host, got, err, test.want)
		}
	}
	for _, u := range []string{"https://93.184.216.34./", "https://0x5d.184.216.34/", "https://1572395042/", "https://[::ffff:93.184.216.34]/", "https://93.184.55330/"} {
		if host, ok, err := egress.Allowed([]string{"93.184.216.34"}, u); err == nil {
			t.Errorf("another spelling, %q, is %q: %v", u, host, ok)
		}
	}
	if _, ok, err := egress.Allowed(nil, "https://example.com"); ok || err != nil {
		t.Errorf("without a grant: %v, %v", ok, err)
	}
}

func TestGrantsThatCannotBe(t *testing.T) {
	for _, entry := range []string{
		"", "*", "*.", "*.com", "**.example.com", "a.*.example.com", "*example.com", "https://example.com", "example.com/",
		"user@example.com", "example.com:", "example.com:0", "example.com:080", "example.com:99999", "example.com:http", "-a.example.com",
		"a..example.com", ".example.com", "*.127.0.0.1", "*.0.0.1", "2130706433", "0x7f.1", "010.0.0.1", "::1", "2001:db8::1", "[fe80::1%lo]",
		"[::ffff:8.8.8.8]", "[8.8.8.8]", "[::1", "exa mple.com", "ｅxample.com", "a.example.com,b.example.com", strings.Repeat("a", 64) + ".com",
		strings.Repeat("a.", 127) + "com", "\xff.com", strings.Repeat("ü", 64) + ".com",
	} {
		err := egress.CheckHosts([]string{"fine.example.com", entry})
		if abi.CodeOf(err) != abi.BadFields {
			t.Errorf("%q: %v, want bad_fields", entry, err)
		}
		if _, err := get(t, egress.New(egress.Options{}), []string{entry}, "https://fine.example.com"); abi.CodeOf(err) != abi.BadFields {
			t.Errorf("a request under %q: %v, want bad_fields", entry, err)
		}
	}
	if err := egress.CheckHosts([]string{"a.example.com", "*.b.example.com:8443", "1.1.1.1", "[2606:4700::1111]:1"}); err != nil {
		t.Error(err)
	}
}

// TestPunycode has the sample strings of RFC 3492 section 7.1, in lower case. One has a
// question mark, which is not a letter of a host name.
func TestPunycode(t *testing.T) {
	for in, want := range map[string]string{
		"ليهمابتكلموشعربي؟":            "a host name with the character '؟'",
		"他们为什么不说中文":                    "ihqwcrb4cv8a8dqg056pqjye",
		"他們爲什麽不說中文":                    "ihqwctvzc91f659drss3x8bo0yb",
		"למההםפשוטלאמדבריםעברית":       "4dbcagdahymbxekheh6e0a7fei0b",
		"почемужеонинеговорятпорусски": "b1abfaaepdrnnbgefbadotcwatmq2g4l",
		"3年b組金八先生":                     "3b-ww4c5e180e575a65lsy2b",
		"bücher":                       "bcher-kva",
		"münchen":                      "mnchen-3ya",
		"faß":                          "fa-hia",
		"ü":                            "tda",
	} {
		if got := egress.Punycode(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestDeniedNamesHostAndGrant(t *testing.T) {
	_, err := get(t, egress.New(egress.Options{}), []string{"a.example.com"}, "https://evil.test:99/x")
	e := wantCode(t, err, abi.Denied)
	if e.Message != `fetch "evil.test:99": not among the hosts granted for "http"` || !strings.Contains(e.Hint, `"evil.test:99"`) || !e.Permanent {
		t.Errorf("%+v", e)
	}
}
