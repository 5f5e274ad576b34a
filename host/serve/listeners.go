package serve

import (
	"context"
	"errors"
	"fmt"

	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/control"
)

// A Listener is a place where a server accepts connections. Its texts are the row of the
// table in SERVE.md.
type Listener struct {
	Name    string
	Network string // "unix" or "tcp"
	Address string // the setting that has it; of the socket its path
	Clients string // who can connect
	Proof   string // what a request needs
	Open    string // the paths that answer without it

	addr  func(config.Config) string // of a port, empty if it is not configured
	paths func(string) bool          // that the port has; nil for all
}

// The names of listeners.
const (
	listenerSocket   = "control socket"
	listenerAPI      = "API"
	listenerVerifier = "verifier"
)

// Listeners returns all listeners of a server. It opens no others, which a test checks on
// a process, and each refuses requests without the proof, which another test checks.
func Listeners() []Listener {
	const token = "a token of the state folder"
	return []Listener{
		{
			Name: listenerSocket, Network: "unix", Address: "`STATE/" + control.SocketName + "`", Clients: "processes of the user of the server",
			Proof: token, Open: "`/health` `/ready`",
		},
		{
			Name: listenerAPI, Network: "tcp", Address: "`serve.listen`", Clients: "this machine, or with TLS also others",
			Proof: token + ", none with `--no-auth`", Open: "`/health` `/ready`; `/v1/hooks/...` checks the secret of the trigger",
			addr: func(c config.Config) string { return c.Serve.Listen },
		},
		{
			Name: listenerVerifier, Network: "tcp", Address: "`verify.listen`", Clients: "as for the API",
			Proof: "as for the API", Open: "`/health` `/ready`",
			addr: func(c config.Config) string { return c.Verify.Listen }, paths: api.VerifierOnly,
		},
	}
}

// listen opens the ports that are configured, by their names. The control socket is opened
// with the store.
func (s *Server) listen(ctx context.Context) (map[string]*api.Server, error) {
	settings := s.host.Settings()
	ports := map[string]*api.Server{}
	for _, l := range Listeners() {
		if l.addr == nil || l.addr(settings.Config) == "" {
			continue
		}
		port, err := s.api.Listen(ctx, api.ListenOptions{
			Addr: l.addr(settings.Config), Paths: l.paths, CertFile: settings.Serve.TLSCert, KeyFile: settings.Serve.TLSKey, TLSElsewhere: settings.Serve.TLSElsewhere,
		})
		if err != nil {
			err = fmt.Errorf("%s: %w", l.Name, err)
			for _, other := range ports {
				err = errors.Join(err, other.Close())
			}
			return nil, err
		}
		ports[l.Name] = port
	}
	return ports, nil
}
