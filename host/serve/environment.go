package serve

import (
	"os"

	"github.com/sentinel-runtime/sentinel/host/config"
)

// meant are variables that other trackers and verifiers read, with the settings here that do the same.
var meant = []struct {
	name, instead string
	settings      []string
}{
	{"MAX_VERIFY_ATTEMPTS", "the number of failing verifications of a claim is a setting", []string{"verify.attempts"}},
	{"VERIFIER_URL", "this server is the verifier; a port for the verifier alone is a setting", []string{"verify.listen"}},
	{"TICKETS_API_URL", "this server has the tickets, and its address is a setting", []string{"serve.listen"}},
	{"REPOS_BASE_PATH", "clones are in the user's cache, below XDG_CACHE_HOME; their size is a setting", []string{"worktrees.size"}},
	{"PORT", "the addresses of the server and of the verifier are settings", []string{"serve.listen", "verify.listen"}},
}

// logMeant logs each variable that is set and has another name here.
func (s *Server) logMeant() {
	getenv := s.opt.Host.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	for _, m := range meant {
		if getenv(m.name) == "" {
			continue
		}
		var names []string
		for _, key := range m.settings {
			names = append(names, config.EnvName(key))
		}
		s.log.Warn("environment variable is not read: "+m.instead, "variable", m.name, "settings", m.settings, "variables", names)
	}
}
