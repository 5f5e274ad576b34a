package role_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/abitest/abidoc"
	"github.com/sentinel-runtime/sentinel/sdk/role"
)

// TestOutputs: what keeps a contract and what does not.
func TestOutputs(t *testing.T) {
	lines := `{"lines":[{"text":"a","stream":"stdout"},{"text":"b","stream":"stderr"}]}`
	for _, tt := range []struct {
		as             abi.Role
		fields, output string
		want           string // part of the error, empty for none
	}{
		{abi.RoleErrorClassifier, `{}`, `null`, ""},
		{abi.RoleErrorClassifier, `{}`, `{"category":"api"}`, ""},
		{abi.RoleErrorClassifier, `{}`, `{"category":"logic","subcategory":"not_found","confidence":0,"more":1}`, ""},
		{abi.RoleErrorClassifier, `{}`, `{}`, `A9.3`},
		{abi.RoleErrorClassifier, `{}`, `{"category":"security"}`, `category "security"`},
		{abi.RoleErrorClassifier, `{}`, `{"category":"api","subcategory":"Not Found"}`, "subcategory"},
		{abi.RoleErrorClassifier, `{}`, `{"category":"api","subcategory":"` + strings.Repeat("a", 65) + `"}`, "subcategory"},
		{abi.RoleErrorClassifier, `{}`, `{"category":"api","confidence":1.1}`, "confidence"},
		{abi.RoleErrorClassifier, `{}`, `"api"`, "want null or an object"},
		{abi.RoleOutputClassifier, lines, `{"lines":[null,{"classification":"error","action":"suppress"}]}`, ""},
		{abi.RoleOutputClassifier, lines, `{"lines":[null]}`, "1 entries for 2 lines"},
		{abi.RoleOutputClassifier, lines, `{}`, "0 entries"},
		{abi.RoleOutputClassifier, lines, `null`, "0 entries"},
		{abi.RoleOutputClassifier, lines, `{"lines":[null,{"classification":"fatal"}]}`, "lines[1].classification"},
		{abi.RoleOutputClassifier, lines, `{"lines":[{"classification":"info","action":"drop"},null]}`, "lines[0].action"},
		{abi.RoleModel, `{}`, `{"text":"a","finish":"stop","usage":{"inputTokens":1,"outputTokens":2}}`, ""},
		{abi.RoleModel, `{}`, `{"text":"","finish":"tools","toolCalls":[{"name":"a","arguments":"{\"b\":1"}],"usage":{"inputTokens":0,"outputTokens":0}}`, ""},
		{abi.RoleModel, `{}`, `{"text":"a","finish":"done","usage":{"inputTokens":1,"outputTokens":2}}`, "finish"},
		{abi.RoleModel, `{}`, `{"text":"a","finish":"stop","usage":{"inputTokens":1e300,"outputTokens":2}}`, "A9.6"},
		{abi.RoleModel, `{}`, `{"text":"a","finish":"tools","toolCalls":[{"name":""}],"usage":{"inputTokens":1,"outputTokens":2}}`, "toolCalls[0]"},
		{abi.RoleModel, `{}`, `{"text":"a","finish":"tools","toolCalls":[` + strings.Repeat(`{"name":"a"},`, 128) + `{"name":"a"}],"usage":{"inputTokens":1,"outputTokens":2}}`, "129 tool calls"},
		{abi.RoleCommand, `{}`, `17`, ""},
		{abi.RoleNotifier, `{}`, `null`, ""},
	} {
		err := role.CheckOutput(tt.as, json.RawMessage(tt.fields), json.RawMessage(tt.output))
		if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), role.Clause(tt.as))) {
			t.Errorf("%s %.60s: %v, want %q", tt.as, tt.output, err, tt.want)
		}
	}
}

// TestFields: the fields of a role are offered to the schema of its step type, and the first
// that it refuses is in the error.
func TestFields(t *testing.T) {
	for _, as := range abi.Roles() {
		given := 0
		if err := role.CheckFields(as, func(json.RawMessage) error { given++; return nil }); err != nil {
			t.Error(err)
		}
		if (given == 0) != (as == abi.RoleCommand) {
			t.Errorf("%s: %d examples", as, given)
		}
		if as == abi.RoleCommand {
			continue
		}
		err := role.CheckFields(as, func(json.RawMessage) error { return errors.New("not these") })
		if err == nil || !strings.Contains(err.Error(), "not these") || !strings.Contains(err.Error(), role.Clause(as)) {
			t.Errorf("%s: %v", as, err)
		}
	}
}

// TestRoleTable compares the roles with the table of clause A2.6, and each contract with
// its clause.
func TestRoleTable(t *testing.T) {
	rows := abidoc.Table(t, "A2.6")
	roles := abi.Roles()
	if len(rows) != len(roles) {
		t.Fatalf("sdk/ABI.md A2.6 has %d roles, package abi %d", len(rows), len(roles))
	}
	for i, row := range rows {
		if row[0] != string(roles[i]) || row[1] != role.Clause(roles[i]) {
			t.Errorf("sdk/ABI.md A2.6: row %d is %q, want %s, %s", i+1, row, roles[i], role.Clause(roles[i]))
		}
	}
}

// FuzzRead: no output of a plugin panics a decoder, and what is accepted is within the
// contract.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{`null`, `{"category":"api","confidence":1}`, `{"lines":[null,{"classification":"error"}]}`, `{"text":"a","finish":"tools","toolCalls":[{"name":"a","arguments":{}}],"usage":{"inputTokens":1,"outputTokens":2}}`, `[`, `{"lines":1e9}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, output []byte) {
		if c, err := role.ReadErrorClass(output); err == nil && c != nil && (c.Confidence != nil && (*c.Confidence < 0 || *c.Confidence > 1) || len(c.Subcategory) > 64) {
			t.Errorf("%q is %+v", output, c)
		}
		if lines, err := role.ReadLineClasses(output, 2); err == nil && len(lines) != 2 {
			t.Errorf("%q has %d lines", output, len(lines))
		}
		if r, err := role.ReadReply(output); err == nil && (r.Usage == nil || r.Usage.InputTokens < 0 || len(r.ToolCalls) > role.MaxToolCalls) {
			t.Errorf("%q is %+v", output, r)
		}
	})
}
