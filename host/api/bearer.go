package api

import (
	"net/http"
	"strings"
)

// tokenProtocol is the prefix of the subprotocol with which a page sends its
// token: a browser's WebSocket cannot set headers.
const tokenProtocol = "token."

// requestToken returns the token of a request. It reads headers only: URLs end
// up in logs and histories.
func presented(r *http.Request, route *Route) (string, bool) {
	// Two headers are refused: proxies and servers differ in which one they
	// use.
	given := r.Header.Values("Authorization")
	if len(given) == 1 {
		scheme, token, ok := strings.Cut(given[0], " ")
		if ok && strings.EqualFold(scheme, "Bearer") {
			return strings.TrimSpace(token), true
		}
	}
	if len(given) > 0 || route == nil || route.Pattern != "/ws" {
		return "", false
	}
	return protocolToken(r.Header)
}

// protocolToken removes the token from the offered subprotocols, so that the
// feed cannot select or repeat it.
func protocolToken(h http.Header) (token string, found bool) {
	const name = "Sec-Websocket-Protocol"
	var rest []string
	for _, line := range h.Values(name) {
		for offer := range strings.SplitSeq(line, ",") {
			offer = strings.TrimSpace(offer)
			if t, ok := strings.CutPrefix(offer, tokenProtocol); ok {
				token, found = t, true
			} else if offer != "" {
				rest = append(rest, offer)
			}
		}
	}
	h.Del(name)
	if len(rest) > 0 {
		h.Set(name, strings.Join(rest, ", "))
	}
	return token, found
}
