package host

import (
	"log/slog"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Options configure a [Host]. The zero value works in the current folder.
type Options struct {
	// Dir is the nearest .sentinel folder; its state subfolder holds the store.
	// Default: found upwards from Workspace, else made there.
	Dir string
	// State overrides Dir/state.
	State string
	// Workspace is where commands work that no run's workspace decides.
	// Default: the current folder.
	Workspace string
	// Plugins is a folder of *.wasm files of others. Default none.
	Plugins string
	// Model overrides the configured model, "provider/name". Default: that of
	// configuration file, else "auto".
	Model string
	// Config is the configuration file. Default: sentinel/config.json in the
	// user's configuration folder, such as ~/.config.
	Config string
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
	// Observer is told what happens; see [runtime.Observer].
	Observer runtime.Observer
	// Limits are the engine's. Default: its own.
	Limits runtime.Limits
	// Getenv reads the environment. Default os.Getenv.
	Getenv func(string) string
	// Logger takes what concerns the process. Default discards.
	Logger *slog.Logger
}
