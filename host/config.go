package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Config is the user's configuration file. It is never read from a project: a
// repository that could name a server and the variable of a key would have the
// key sent there. Secrets are not in it: a provider names the environment
// variable that holds its key.
type Config struct {
	Models ModelConfig `json:"models"`
}

// ModelConfig says which models there are. What it leaves out is taken from the
// environment.
type ModelConfig struct {
	// Default is the model of a step that names none or "auto":
	// "provider/name". Default "auto".
	Default string `json:"default,omitempty"`
	// Auto lists the candidates for "auto", best first.
	Auto []string `json:"auto,omitempty"`
	// Providers are added to those of the environment.
	Providers []llm.Provider `json:"providers,omitempty"`
	// Known adds to and overrides the built-in table of models and prices.
	Known []llm.Model `json:"known,omitempty"`
}

// configPath is sentinel/config.json in the user's configuration folder, empty
// where there is no such folder.
func configPath(getenv func(string) string) string {
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "sentinel", "config.json")
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "sentinel", "config.json")
}

// readConfig reads a configuration file; one that is not there is an empty one.
func readConfig(path string) (Config, error) {
	if path == "" {
		return Config{}, nil
	}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Config{}, nil
	}
	if err != nil {
		return Config{}, fmt.Errorf("read configuration: %w", err)
	}
	var c Config
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, configError(path, raw, d.InputOffset(), err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return c, configError(path, raw, d.InputOffset(), errors.New("text behind the JSON value"))
	}
	return c, nil
}

func configError(path string, raw []byte, offset int64, err error) error {
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &wrong):
		offset = wrong.Offset
	default: // an unknown key: the decoder names it and is past its value
		if _, key, ok := strings.Cut(err.Error(), "unknown field "); ok {
			if at := bytes.Index(raw, []byte(key)); at >= 0 {
				offset = int64(at)
			}
		}
	}
	before := raw[:min(int(offset), len(raw))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return &abi.Error{
		Code: abi.BadFields, Permanent: true,
		Message: fmt.Sprintf("%s:%d:%d: %v", path, line, column, err),
		Hint:    `it holds {"models": {"default": "provider/name", "auto": [], "providers": [], "known": []}}`,
	}
}
