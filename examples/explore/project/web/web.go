// Package web answers the sign-in form.
package web

import (
	"crypto/sha256"
	"net/http"

	"example.com/portal/lockout"
	"example.com/portal/login"
)

// A Handler signs people in.
type Handler struct {
	Guard  *lockout.Guard
	Hashes map[string][]byte // by name
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	sum := sha256.Sum256([]byte(r.FormValue("password")))
	name := r.FormValue("name")
	if err := login.Check(h.Guard, name, h.Hashes[name], sum[:]); err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
