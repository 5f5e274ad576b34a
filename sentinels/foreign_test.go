package sentinels_test

import (
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A file of another program is called by its name, and not taken for JSON with a mistake.
func TestForeignFiles(t *testing.T) {
	for text, want := range map[string]string{
		"name: build\non:\n  push:\njobs:\n  a:\n    runs-on: ubuntu\n":                 "a GitHub workflow",
		"# comment\non: push\njobs: {}\n":                                               "a GitHub workflow",
		"stages: [a]\nbuild:\n  script: make\n":                                         "a GitLab pipeline",
		"services:\n  db:\n    image: postgres\n":                                       "a Compose file",
		"---\nname: x\nsteps:\n  - type: shell\n":                                       "YAML",
		"name: x\r\nsteps: []\r\n":                                                      "YAML",
		"- type: shell\n  command: ls\n":                                                "YAML",
		"# m h dom mon dow\nMAILTO=\"\"\n0 3 * * * /usr/bin/backup\n":                   "a crontab",
		"*/5 * * * 1-5 cd /srv && make\n":                                               "a crontab",
		"0 7 * jan mon echo x\n":                                                        "a crontab",
		"@daily /usr/bin/backup\n":                                                      "a crontab",
		"SHELL=/bin/sh\n@reboot x\n":                                                    "a crontab",
		"name = \"x\"\n[[steps]]\n":                                                     "TOML",
		"#!/bin/sh\nmake\n":                                                             "a script",
		`{"name":"w","nodes":[{"type":"n8n-nodes-base.start"}],"connections":{"a":{}}}`: "an n8n workflow",
		`{"name":"w","nodes":[],"connections":{},"steps":[]}`:                           "",
		`{"name":"w","steps":[{"type":"shell","command":"0 3 * * * x"}]}`:               "",
		"// a comment\n{\"name\":\"w\",\"steps\":[]}":                                   "",
		"{name: 1}": "",
		"":          "",
		"nonsense":  "",
		"7":         "",
		"[1]":       "",
		"0 3":       "",
	} {
		_, problems := sentinels.Decode([]byte(text), sentinels.DecodeOptions{File: "f"})
		got := ""
		for _, p := range problems {
			if strings.HasPrefix(p.Message, "this is ") {
				got = strings.TrimSuffix(strings.TrimPrefix(p.Message, "this is "), ", not a definition")
				if len(problems) != 1 || p.Hint == "" || p.Line != 1 {
					t.Errorf("%q: %d problems, hint %q", text, len(problems), p.Hint)
				}
			}
		}
		if got != want {
			t.Errorf("%q is called %q, want %q", text, got, want)
		}
	}
}

// The hint for a crontab leads to the page about its times.
func TestForeignCrontabHint(t *testing.T) {
	_, problems := sentinels.Decode([]byte("30 2 * * * /usr/bin/backup\n"), sentinels.DecodeOptions{File: "f"})
	if len(problems) != 1 || !strings.Contains(problems[0].Hint, "`sentinel help cron`") {
		t.Errorf("problems %+v, want a hint that names the help topic", problems)
	}
}
