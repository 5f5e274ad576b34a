package gitsource

import (
	"encoding/base64"
	"fmt"
	"net/url"
)

// A Credential is a token for the https remotes of one server, or the http remotes of one on this machine.
type Credential struct {
	URL   string // of the server: its scheme and host count
	Token string
}

// Credential returns the variables by which git sends the token to a remote of its server, and
// to no other, and by which it speaks http with this machine. They are no arguments, which all
// users of the machine see.
func (m *Mirrors) Credential(to string) (env []string, err error) {
	remote, err := url.Parse(to)
	if err != nil || remote.Scheme != "https" && remote.Scheme != "http" {
		return nil, nil //nolint:nilerr // the other forms of repositories have no token
	}
	var settings [][2]string
	if remote.Scheme == "http" { // Parse accepts this machine only, and a redirect leads elsewhere
		env, settings = []string{"GIT_ALLOW_PROTOCOL=http"}, [][2]string{{"http.followRedirects", "false"}}
	}
	word, err := m.word(remote)
	if err != nil {
		return nil, err
	}
	if word != "" {
		settings = [][2]string{
			{"http." + remote.Scheme + "://" + remote.Host + "/.extraHeader", "Authorization: Basic " + word},
			{"http.followRedirects", "false"}, // the header would go along
			{"credential.helper", ""},
		}
	}
	if len(settings) == 0 {
		return nil, nil
	}
	env = append(env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(settings)))
	for i, pair := range settings {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, pair[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, pair[1]))
	}
	return env, nil
}

// word returns the token for a remote as basic authentication has it, "" if it gets none.
func (m *Mirrors) word(remote *url.URL) (string, error) {
	if m.Auth == nil {
		return "", nil
	}
	c, err := m.Auth()
	if err != nil || c.Token == "" {
		return "", err
	}
	own, err := url.Parse(c.URL)
	if err != nil || own.Host != remote.Host || own.Scheme != remote.Scheme {
		return "", err
	}
	return base64.StdEncoding.EncodeToString([]byte("x-access-token:" + c.Token)), nil
}
