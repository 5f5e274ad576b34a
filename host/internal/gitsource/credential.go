package gitsource

import (
	"encoding/base64"
	"fmt"
	"net/url"
)

// A Credential is a token for the https remotes of one server.
type Credential struct {
	URL   string // of the server: its scheme and host count
	Token string
}

// Credential returns the variables by which git sends the token to an https remote of its
// server, and to no other. They are no arguments, which all users of the machine see.
func (m *Mirrors) Credential(to string) (env []string, err error) {
	remote, err := url.Parse(to)
	if err != nil || remote.Scheme != "https" || m.Auth == nil {
		return nil, nil //nolint:nilerr // the other forms of repositories have no token
	}
	c, err := m.Auth()
	if err != nil || c.Token == "" {
		return nil, err
	}
	own, err := url.Parse(c.URL)
	if err != nil || own.Host != remote.Host || own.Scheme != remote.Scheme {
		return nil, err
	}
	word := base64.StdEncoding.EncodeToString([]byte("x-access-token:" + c.Token))
	settings := [][2]string{
		{"http.https://" + own.Host + "/.extraHeader", "Authorization: Basic " + word},
		{"http.followRedirects", "false"}, // the header would go along
		{"credential.helper", ""},
	}
	env = []string{fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(settings))}
	for i, pair := range settings {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, pair[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, pair[1]))
	}
	return env, nil
}
