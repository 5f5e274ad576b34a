package egress

import "math"

// Parameters of Punycode, RFC 3492 section 5.
const (
	punyBase = 36
	punyTMin = 1
	punyTMax = 26
	punySkew = 38
	punyDamp = 700
	punyBias = 72
	punyN    = 128
)

// punycode encodes a label as RFC 3492 section 6.3 has it, without "xn--". The
// caller bounds its length, so that delta cannot overflow: 252 runes times
// the largest code point are less than 2^31.
func punycode(label []rune) string {
	var out []byte
	for _, r := range label {
		if r < punyN {
			out = append(out, byte(r))
		}
	}
	basic := len(out)
	handled := basic
	if basic > 0 {
		out = append(out, '-')
	}
	n, delta, bias := rune(punyN), 0, punyBias
	for handled < len(label) {
		next := rune(math.MaxInt32)
		for _, r := range label {
			if r >= n {
				next = min(next, r)
			}
		}
		delta += int(next-n) * (handled + 1)
		n = next
		for _, r := range label {
			if r < n {
				delta++
			}
			if r != n {
				continue
			}
			out = appendDelta(out, delta, bias)
			bias = adapt(delta, handled+1, handled == basic)
			delta = 0
			handled++
		}
		delta++
		n++
	}
	return string(out)
}

// appendDelta writes a number with digits of variable weight.
func appendDelta(out []byte, delta, bias int) []byte {
	for k := punyBase; ; k += punyBase {
		t := min(max(k-bias, punyTMin), punyTMax)
		if delta < t {
			return append(out, punyDigit(delta))
		}
		out = append(out, punyDigit(t+(delta-t)%(punyBase-t)))
		delta = (delta - t) / (punyBase - t)
	}
}

// punyDigit returns the digit for 0 to 35.
func punyDigit(n int) byte {
	if n < 26 {
		return byte('a' + n)
	}
	return byte('0' + n - 26)
}

// adapt returns the next bias, so that numbers of the size of the last one take
// few digits: RFC 3492 section 6.1.
func adapt(delta, points int, first bool) int {
	if first {
		delta /= punyDamp
	} else {
		delta /= 2
	}
	delta += delta / points
	k := 0
	for ; delta > (punyBase-punyTMin)*punyTMax/2; k += punyBase {
		delta /= punyBase - punyTMin
	}
	return k + (punyBase-punyTMin+1)*delta/(delta+punySkew)
}
