package host

import (
	"context"
	"log/slog"

	"github.com/sentinel-runtime/sentinel/host/audit"
	"github.com/sentinel-runtime/sentinel/host/command/sentinel"
	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/redact"
	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// Options configure a [Host]. The zero value works in the current folder.
type Options struct {
	// Dir is the nearest .sentinel folder; its state subfolder holds the store.
	// Default: found upwards from Workspace, else made there.
	Dir string
	// State overrides Dir/state.
	State string
	// Version is the version of the program, which a store that it creates or migrates
	// has. Default "devel".
	Version string
	// Redactor gets the secrets of this host. Default: one of its own. A caller that publishes
	// texts of the host gives one that it redacts them with.
	Redactor *redact.Redactor
	// CacheDir holds compiled plugins. Default: see [CacheDir].
	CacheDir string
	// Workspace is where commands work that no run's workspace decides.
	// Default: the current folder.
	Workspace string
	// Plugins is a folder of *.wasm files of others, besides that of Dir. Default
	// none.
	Plugins string
	// Watched leaves the folder plugins of Dir to a caller that follows the changes
	// in it. Default false: it is loaded once, now.
	Watched bool
	// Regrant has the engine ask again what plugins may do, after a command has
	// changed it. Default: the engine's own.
	Regrant func(ctx context.Context) error
	// Model overrides the configured model, "provider/name". Default: that of
	// configuration file, else "auto".
	Model string
	// AskTrust makes content of the project's folder count only after the user has trusted
	// it, or written it with a verb or an editor: what a repository of others brings is
	// not executed. Default false: all content counts, the embedder vouches for it.
	AskTrust bool
	// Config is the configuration file. Default: sentinel/config.json in the
	// user's configuration folder, such as ~/.config.
	Config string
	// Settings are what was loaded already; then Config and Set do not count.
	// Default: they are loaded from Config, the environment and Set.
	Settings *config.Loaded
	// AnyModel accepts every name of a model in definitions: the configuration, which
	// names providers, cannot be read. Default false.
	AnyModel bool
	// Set overrides settings by their key, as flags do; see package config.
	Set map[string]string
	// Record is a cassette file to write. Default none.
	Record string
	// Append goes on with a cassette that is there, as a resumed run does.
	// Default false: Record then refuses an existing file.
	Append bool
	// Replay is a cassette file to answer from in place of models. Default none.
	Replay string
	// OnInterrupt decides about calls in doubt where the definition does not.
	OnInterrupt sentinels.Interrupt
	// Files keep the definitions of watched folders and their files the same,
	// when commands edit them. Default: definitions live in the store alone.
	Files sentinel.Definitions
	// Kinds are kinds of triggers besides the usual ones. Default none.
	Kinds triggers.Set
	// Observer receives what happens; see [runtime.Observer].
	Observer runtime.Observer
	// Recorded is called with the audit entry of each successful call that changes something. It
	// must not block. Default nil.
	Recorded func(audit.Entry)
	// Tickets counts decisions about tickets; its functions may be nil.
	Tickets ticket.Observer
	// Limits are the engine's. Default: its own.
	Limits runtime.Limits
	// Subreaper makes this process adopt the orphans of all its descendants, so that
	// a step cannot leave processes behind by killing what supervises it; see
	// Options of package shell. It is for programs that start no other children in sessions of
	// their own. Default false.
	Subreaper bool
	// Getenv reads the environment. Default os.Getenv.
	Getenv func(string) string
	// Environ lists the environment as os.Environ does. The values of variables that
	// hold secrets by their names are kept out of everything that is written, see
	// InEnvironment of host/secret. Default os.Environ.
	Environ func() []string
	// Logger takes what concerns the process. Default discards.
	Logger *slog.Logger
}
