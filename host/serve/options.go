package serve

import (
	"log/slog"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/logfile"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// Options configure a [Server]. The zero value serves the current folder on the
// configured address.
type Options struct {
	// Host says which folders are served and how; see [host.Options]. Settings
	// such as the address are overridden by its field Set: {"serve.listen": ""}
	// opens no port at all, for programs that mount [Server.Handler].
	Host host.Options
	// Tokens are further bearer tokens that the API accepts. Default: only that of
	// the state folder.
	Tokens []string
	// Kinds are further kinds of triggers. Default: only the usual ones.
	Kinds triggers.Set
	// Version is the program's version, sent to clients. Default "dev".
	Version string
	// Ready is called once files are loaded, runs are resumed, triggers are armed
	// and the address is open. Default none.
	Ready func(Start)
	// Stopping is called when the shutdown begins. Default none.
	Stopping func()
	// Logger receives the process log. Default: [host.Options.Logger].
	Logger *slog.Logger
	// LogPlace is where Logger writes. It is recorded in the state folder, for those
	// who look for the log of this server. Default: a place that cannot be read.
	LogPlace logfile.Place
}
