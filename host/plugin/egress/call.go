package egress

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Call is one request of a plugin, and what the plugin may do.
type Call struct {
	// Plugin is its name, for hints. Default "NAME".
	Plugin string
	// Hosts may be asked. Default none.
	Hosts []string
	// Private lets those hosts have addresses of private networks and loopback.
	// Addresses that are for one link alone or serve clouds' metadata are refused
	// all the same.
	Private bool
	// Secrets are the names that the request may carry, each with the hosts that
	// may be sent it: as in Hosts, or "http://host" for one to which it may go
	// without TLS. Default none.
	Secrets map[string][]string
	// Key is sent as Idempotency-Key with a request that changes something,
	// unless the guest set one. Default none.
	Key string
	// Request is as the guest wrote it.
	Request json.RawMessage
}

// An allowance is a call's grants, read.
type allowance struct {
	plugin  string
	hosts   grant
	secrets map[string]grant
	reach   *reach
	// own is set for a request of the host's own, which may go to any host; those in hosts may
	// have private addresses.
	own bool
}

// allows reports whether a request may go to a host.
func (a *allowance) allows(to authority) bool { return a.own || a.hosts.allows(to) }

// reachOf returns the addresses that a host may have.
func (a *allowance) reachOf(c *Client, to authority) *reach {
	if a.own && a.hosts.allows(to) {
		return &c.private
	}
	return a.reach
}

func (c *Client) allowance(call Call) (*allowance, error) {
	a := &allowance{plugin: call.Plugin, secrets: make(map[string]grant, len(call.Secrets)), reach: &c.public}
	if a.plugin == "" {
		a.plugin = "NAME"
	}
	if call.Private {
		a.reach = &c.private
	}
	// All of the grant is read before anything is done: one that is wrong in a
	// part that this request does not need is still wrong.
	var err error
	if a.hosts, err = parseGrant(call.Hosts); err != nil {
		return nil, err
	}
	for name, hosts := range call.Secrets {
		if a.secrets[name], err = parseSecretHosts(name, hosts); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// mayCarry reports, as an error, that a secret may not go to a place.
func (a *allowance) mayCarry(name string, to authority) error {
	// Two different mistakes, told apart: no grant, and a grant for TLS alone.
	hosts, ok := a.secrets[name]
	if ok && hosts.carries(to) {
		return nil
	}
	e := refuse(abi.Denied, fmt.Sprintf("fetch %q: secret %q is not granted for this host", to, name), "")
	entry := to.String()
	if to.scheme == "http" {
		entry = "http://" + entry
		if hosts.allows(to) {
			e.Message = fmt.Sprintf("fetch %q: secret %q is granted for this host by https alone", to, name)
		}
	}
	e.Hint = fmt.Sprintf("sentinel plugin allow %s --secret %s=%s", a.plugin, name, entry)
	return e
}

// unsafe reports whether a request changes something, so that a second one of
// the same has to be known for what it is.
func unsafe(method string) bool {
	switch method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return true
	}
	return false
}

// CheckHosts reports the first entry that cannot be part of a grant, as the
// error that every request under such a grant ends with.
func CheckHosts(hosts []string) error {
	_, err := parseGrant(hosts)
	return err
}

// CheckSecretHosts is CheckHosts for the hosts that may be sent a secret.
func CheckSecretHosts(name string, hosts []string) error {
	_, err := parseSecretHosts(name, hosts)
	return err
}
