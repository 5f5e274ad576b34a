package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// commandRoutes are the universal door.
func commandRoutes() []Route {
	return []Route{
		{
			Method: http.MethodGet, Pattern: "/v1/commands", Name: "listCommands", Access: AccessToken,
			Summary: "List every command with its schemas.", serve: (*API).listCommands,
		},
		{
			Method: http.MethodGet, Pattern: "/v1/commands/{name...}", Name: "describeCommand", Access: AccessToken,
			Summary: "Describe one command.", serve: (*API).describeCommand,
		},
		{
			Method: http.MethodPost, Pattern: "/v1/commands/{name...}", Name: "callCommand", Access: AccessToken,
			Summary: "Call a command: the body is its parameters, the answer its result.", serve: (*API).callCommand,
			body: "*", maxBody: maxCommandBody,
		},
	}
}

// commandInfo is a command as programs see it.
type commandInfo struct {
	Name       string          `json:"name"`
	Summary    string          `json:"summary"`
	Input      json.RawMessage `json:"input"`
	Output     json.RawMessage `json:"output,omitempty"`
	Effect     command.Effect  `json:"effect"`
	ReadOnly   bool            `json:"readOnly"`
	Idempotent bool            `json:"idempotent"`
}

// infoOf describes a command. One without a schema takes any object, and says
// so: a program that makes forms of schemas has no case for their absence.
func infoOf(c command.Command) commandInfo {
	info := commandInfo{c.Name, c.Summary, c.Input(), c.Output(), c.Effect, c.ReadOnly(), c.Idempotent}
	if len(info.Input) == 0 {
		info.Input = json.RawMessage(`{"type":"object"}`)
	}
	return info
}

// listCommands answers with all of them, private ones too: private is what
// models are not offered, and the caller is a person.
func (a *API) listCommands(w http.ResponseWriter, _ *http.Request) error {
	text, _, err := a.commands.current(a.opt.Commands.Version(), nil, func() any {
		list := []commandInfo{}
		for _, c := range a.opt.Commands.List() {
			list = append(list, infoOf(c))
		}
		return list
	})
	if err != nil {
		return err
	}
	writeText(w, http.StatusOK, text)
	return nil
}

// describeCommand answers with one of them.
func (a *API) describeCommand(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	c, ok := a.opt.Commands.Lookup(name)
	if !ok {
		e := &abi.Error{Code: abi.NotFound, Permanent: true, Field: "command", Message: fmt.Sprintf("describe %q: no such command", name),
			Hint: "GET /v1/commands lists them"}
		var known []string
		for _, c := range a.opt.Commands.List() {
			known = append(known, c.Name)
		}
		if near := sentinels.Suggest(name, known); len(near) > 0 {
			e.Hint = fmt.Sprintf("did you mean %q?", near[0])
		}
		return e
	}
	return writeJSON(w, http.StatusOK, infoOf(c))
}

// callCommand hands the body to the registry as it came: the registry validates
// it against the command's schema, which is where the schema is.
func (a *API) callCommand(w http.ResponseWriter, r *http.Request) error {
	route := a.byPattern["POST /v1/commands/{name...}"]
	body, release, err := a.readJSON(r, route)
	if err != nil {
		return err
	}
	defer release()
	switch trimmed := bytes.TrimSpace(body); {
	case len(trimmed) == 0:
		body = json.RawMessage("{}")
	case trimmed[0] != '{' && string(trimmed) != "null":
		return errNoObject
	}
	result, err := a.call(r, r.PathValue("name"), body)
	if err != nil {
		return route.place(body, err)
	}
	// A command may have nothing to say; the answer is JSON all the same.
	if len(result) == 0 {
		result = json.RawMessage("null")
	}
	return writeJSON(w, http.StatusOK, result)
}
