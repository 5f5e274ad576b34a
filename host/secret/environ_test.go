package secret_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/secret"
)

func TestInEnvironment(t *testing.T) {
	const long = "0123456789abcdef"
	for _, tt := range []struct {
		entry string
		want  []string
	}{
		{"SENTINEL_SECRET_SLACK=xoxb", []string{"xoxb"}},
		{"SENTINEL_SECRET_PATH=/looks/like/a/path", []string{"/looks/like/a/path"}},
		{"SENTINEL_SECRET_NONE=", nil},
		{"AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE", []string{"AKIAIOSFODNN7EXAMPLE"}},
		{"AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", []string{"wJalrXUtnFEMI/K7MDENG"}},
		{"AWS_SECRET_ACCESS_KEY=/begins/with/a/slash", []string{"/begins/with/a/slash"}},
		{"ACME_CREDENTIALS=/home/me/acme.json", nil},
		{"AZURE_CLIENT_SECRET=12345678", []string{"12345678"}},
		{"AZURE_STORAGE_CONNECTION_STRING=AccountKey=abcdefgh==;", []string{"AccountKey=abcdefgh==;"}},
		{"GITHUB_TOKEN=ghp_0123456789", []string{"ghp_0123456789"}},
		{"GITLAB_TOKEN=glpat-01234", []string{"glpat-01234"}},
		{"NPM_TOKEN=npm_01234", []string{"npm_01234"}},
		{"DOCKER_PASSWORD=dckr_pat_0", []string{"dckr_pat_0"}},
		{"OPENAI_API_KEY=sk-012345", []string{"sk-012345"}},
		{"ANTHROPIC_API_KEY=sk-ant-012345", []string{"sk-ant-012345"}},
		{`GOOGLE_CREDENTIALS={"type":"service_account","private_key":"-----BEGIN-----\nabc","client_email":"someone@example.com"}`, []string{"-----BEGIN-----\nabc"}},
		{`DOCKER_AUTH_CONFIG={"auths":{"registry.example.com":{"auth":"dXNlcjpwYXNz"}}}`, []string{"dXNlcjpwYXNz"}},
		// Of other tools, when it is long enough to be no word.
		{"ACME_DEPLOY_TOKEN=" + long, []string{long}},
		{"acme_api_key=" + long, []string{long}},
		{"POSTGRES_PASSWORD=postgres", nil},
		{"ACME_TOKEN=" + long[:15], nil},
		// Not a secret, or only the location of one.
		{"AWS_REGION=eu-central-1-is-long", nil},
		{"AWS_PROFILE=production-profile", nil},
		{"GOOGLE_APPLICATION_CREDENTIALS=/home/me/service-account.json", nil},
		{"AWS_WEB_IDENTITY_TOKEN_FILE=/var/run/secrets/token", nil},
		{"GITHUB_TOKEN=short", nil},
		{"PATH=/usr/local/bin:/usr/bin", nil},
		{"PAT_THE_DOG=0123456789abcdef", nil},
		{"no assignment", nil},
	} {
		if diff := cmp.Diff(tt.want, secret.InEnvironment([]string{tt.entry})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.entry, diff)
		}
	}
}
