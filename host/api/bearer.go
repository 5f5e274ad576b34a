package api

import (
	"net/http"
	"strings"
)

// tokenProtocol begins the subprotocol by which a page gives its token: a
// browser's WebSocket can send no header.
const tokenProtocol = "token."

// presented returns the token that a request brings. It is taken from headers
// only: a URL ends up in logs and histories.
func presented(r *http.Request, route *Route) (string, bool) {
	// Two headers are one too many: proxies and servers differ in which counts.
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

// protocolToken takes the token out of the offered subprotocols, so that the
// feed cannot choose or repeat it.
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
