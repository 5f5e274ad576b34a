package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"
)

// parseHost reads the host of a URL or of a grant, without its port: a name, an
// IPv4 address, or an IPv6 address in brackets. What resolvers and browsers
// would also read as an address (one number, octal or hexadecimal parts, fewer
// than four, an IPv4 address inside an IPv6 one, a zone) is an error, so that
// no two spellings mean the same place.
func parseHost(s string) (name string, ip netip.Addr, err error) {
	if inner, ok := strings.CutPrefix(s, "["); ok {
		inner, closed := strings.CutSuffix(inner, "]")
		ip, err = netip.ParseAddr(inner)
		switch {
		case !closed || err != nil || !ip.Is6():
			return "", netip.Addr{}, errors.New("not an IPv6 address in brackets")
		case ip.Zone() != "":
			return "", netip.Addr{}, errors.New("an address with a zone is refused")
		case ip.Is4In6():
			return "", netip.Addr{}, errors.New("an IPv4 address is wanted in its own form")
		}
		return "", ip, nil
	}
	name, err = normalName(s)
	if err != nil {
		return "", netip.Addr{}, err
	}
	if !looksLikeAddress(name) {
		return name, netip.Addr{}, nil
	}
	if ip, err = netip.ParseAddr(name); err != nil || !ip.Is4() || s != ip.String() {
		return "", netip.Addr{}, errors.New("an address is wanted as four decimal numbers or as IPv6 in brackets")
	}
	return "", ip, nil
}

// looksLikeAddress reports whether some resolver might take a name as an IPv4
// address: its last label is a number in decimal, octal or hexadecimal.
func looksLikeAddress(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}

// normalName returns a name in lower case and ASCII (its labels in Punycode
// where they need it), without the dot of the root.
func normalName(s string) (string, error) {
	// Even in four-byte letters a name that fits has fewer; normalising a longer
	// text would be work for nothing.
	if len(s) > 1024 {
		return "", errors.New("a host name of more than 253 bytes")
	}
	s = strings.TrimSuffix(s, ".")
	if !isASCII(s) {
		if !utf8.ValidString(s) {
			return "", errors.New("a host name that is not UTF-8")
		}
		s = norm.NFC.String(strings.ToLower(norm.NFC.String(s)))
		// Full-width digits, ligatures and the like are what others fold to
		// ASCII: a name that reads as one thing and is another.
		if !norm.NFKC.IsNormalString(s) {
			return "", errors.New("a host name with letters that stand for others")
		}
	}
	labels := strings.Split(strings.ToLower(s), ".")
	for i, label := range labels {
		ascii, err := normalLabel(label)
		if err != nil {
			return "", err
		}
		labels[i] = ascii
	}
	name := strings.Join(labels, ".")
	if len(name) > 253 {
		return "", errors.New("a host name of more than 253 bytes")
	}
	return name, nil
}

// normalLabel checks one label of a name and returns it in ASCII. Underscores
// are let through: they are in names that exist.
func normalLabel(s string) (string, error) {
	if s == "" {
		return "", errors.New("a host name with an empty label")
	}
	for _, r := range s {
		switch {
		case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z':
		case r > unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)):
		default:
			return "", fmt.Errorf("a host name with the character %q", r)
		}
	}
	first, _ := utf8.DecodeRuneInString(s)
	if first == '-' || strings.HasSuffix(s, "-") || unicode.IsMark(first) {
		return "", errors.New("a host name with a label that begins or ends wrongly")
	}
	if !isASCII(s) {
		if len(s) > 63*utf8.UTFMax {
			return "", errors.New("a host name with a label of more than 63 bytes")
		}
		ascii, err := idna.Punycode.ToASCII(s) // checked above: the profile converts, and no more
		if err != nil {
			return "", fmt.Errorf("a host name with a label that has no form in ASCII: %w", err)
		}
		s = ascii
	}
	if len(s) > 63 {
		return "", errors.New("a host name with a label of more than 63 bytes")
	}
	return s, nil
}

// isASCII reports whether a name needs no conversion.
func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] > unicode.MaxASCII {
			return false
		}
	}
	return true
}
