package secret

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
)

// known are variables that tools of clouds, forges, registries and model
// providers read credentials from, besides those that [secretName] finds.
var known = []string{
	"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN",
	"AZURE_CLIENT_SECRET", "AZURE_PASSWORD", "AZURE_STORAGE_KEY", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_SAS_TOKEN", "ARM_CLIENT_SECRET", "ARM_ACCESS_KEY",
	"GOOGLE_API_KEY", "GOOGLE_CREDENTIALS", "GOOGLE_OAUTH_ACCESS_TOKEN", "GCLOUD_SERVICE_KEY", "CLOUDSDK_AUTH_ACCESS_TOKEN",
	"DIGITALOCEAN_TOKEN", "DIGITALOCEAN_ACCESS_TOKEN", "HCLOUD_TOKEN", "LINODE_TOKEN", "CLOUDFLARE_API_TOKEN", "CLOUDFLARE_API_KEY", "HEROKU_API_KEY", "FLY_API_TOKEN",
	"GITHUB_TOKEN", "GH_TOKEN", "GITHUB_PAT", "GH_ENTERPRISE_TOKEN", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
	"GITLAB_TOKEN", "GITLAB_PRIVATE_TOKEN", "CI_JOB_TOKEN", "CI_REGISTRY_PASSWORD", "CI_DEPLOY_PASSWORD", "BITBUCKET_TOKEN", "BITBUCKET_APP_PASSWORD", "GITEA_TOKEN",
	"AZURE_DEVOPS_EXT_PAT", "SYSTEM_ACCESSTOKEN",
	"NPM_TOKEN", "NODE_AUTH_TOKEN", "TWINE_PASSWORD", "PYPI_TOKEN", "CARGO_REGISTRY_TOKEN", "GEM_HOST_API_KEY",
	"DOCKER_PASSWORD", "DOCKER_AUTH_CONFIG", "DOCKERHUB_TOKEN", "SENTINEL_REGISTRY_PASSWORD", "SENTINEL_PLUGIN_KEY_PASSWORD", "SENTINEL_TOKEN",
	"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GEMINI_API_KEY", "MISTRAL_API_KEY", "GROQ_API_KEY", "DEEPSEEK_API_KEY", "OPENROUTER_API_KEY",
	"XAI_API_KEY", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "REPLICATE_API_TOKEN",
	"VAULT_TOKEN", "CONSUL_HTTP_TOKEN", "NOMAD_TOKEN", "TFE_TOKEN", "SLACK_TOKEN", "SLACK_BOT_TOKEN", "STRIPE_SECRET_KEY", "SENTRY_AUTH_TOKEN", "DD_API_KEY", "DD_APP_KEY",
}

// secretName matches other variables that hold a credential by their name. Their
// values count from longValue on, because the likes of POSTGRES_PASSWORD often
// hold a word, and that word would be hidden wherever it stands.
var secretName = lazyregexp.New(`(?i)(^|_)(TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|API_?KEY|ACCESS_KEY|SECRET_KEY|PRIVATE_KEY|AUTH_KEY|CREDENTIALS|PAT)$`)

const (
	shortValue = 8 // what a redactor takes, in bytes
	longValue  = 16
)

// InEnvironment returns the values of an environment, as [os.Environ] returns it,
// that hold secrets by the names of their variables: those that begin with [Env]
// and those of the usual tools. Of a value that is a JSON object the members are
// returned that hold secrets by their names. Values too short to be hidden
// are left out, but those of [Env].
func InEnvironment(environ []string) []string {
	var list []string
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		value = strings.TrimSpace(value)
		switch {
		case value == "":
		case strings.HasPrefix(name, Env):
			list = append(list, value)
		case slices.Contains(known, name):
			list = append(list, held(value, shortValue)...)
		case secretName.MatchString(name) && !strings.ContainsAny(value[:1], "/~."): // a path says where a secret is
			list = append(list, held(value, longValue)...)
		}
	}
	return list
}

// memberName matches the members of a JSON object that hold secrets, as in a
// service account or a list of registries.
var memberName = lazyregexp.New(`(?i)(^|_)(private_?key|secret|client_?secret|password|(identity|access|refresh)?_?token|auth)$`)

// held returns a value, or of a JSON object its members that are secret.
func held(value string, least int) []string {
	var object map[string]any
	if json.Unmarshal([]byte(value), &object) == nil {
		return members(object, least)
	}
	if len(value) < least {
		return nil
	}
	return []string{value}
}

func members(object map[string]any, least int) []string {
	var list []string
	for name, member := range object {
		switch m := member.(type) {
		case map[string]any:
			list = append(list, members(m, least)...)
		case string:
			if memberName.MatchString(name) && len(m) >= least {
				list = append(list, m)
			}
		}
	}
	slices.Sort(list)
	return list
}
