package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/httpproblem"
)

// object is a JSON object on its way into the document. Maps are written in the
// order of their keys, so equal tables make equal documents.
type object = map[string]any

// openapi answers with the document. It is made again when the commands or the step types change,
// which they do while plugins come and go.
func (a *API) openapi(w http.ResponseWriter, r *http.Request) error {
	text, tag, err := a.document.current(a.opt.Commands.Version(), a.definitions(), func() any { return a.describe(a.opt.Commands.List()) })
	if err != nil {
		return err
	}
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	writeText(w, http.StatusOK, text)
	return nil
}

// A rendering is the text of an answer that is large and the same for every caller, with what it was made
// of. To make one takes a hundred times as long as to send it.
type rendering struct {
	mu          sync.Mutex
	version     string          // of the commands
	definitions json.RawMessage // the schema of definitions
	text        []byte
	tag         string // its ETag
}

// current returns the text and its ETag, of the value that render returns unless the text of these commands and
// definitions is there. The text must not be changed.
func (d *rendering) current(version string, definitions json.RawMessage, render func() any) (text []byte, tag string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.text == nil || d.version != version || !bytes.Equal(d.definitions, definitions) {
		text, err := json.Marshal(render())
		if err != nil {
			return nil, "", err
		}
		digest := sha256.Sum256(text)
		d.version, d.definitions, d.text, d.tag = version, definitions, append(text, '\n'), strconv.Quote(hex.EncodeToString(digest[:16]))
	}
	return d.text, d.tag, nil
}

// definitions returns the schema of definitions, nil if it is not known.
func (a *API) definitions() json.RawMessage {
	if a.opt.Schema == nil {
		return nil
	}
	return a.opt.Schema()
}

// describe makes the document of the table and the commands.
func (a *API) describe(list []command.Command) object {
	d := &document{paths: object{}, schemas: object{"Problem": problemSchema()}, known: map[string]command.Command{}}
	var definition any
	if json.Unmarshal(a.definitions(), &definition) == nil {
		d.schemas[definitionSchema] = moved(definition, "#/components/schemas/"+definitionSchema)
	}
	for _, c := range list {
		d.known[c.Name] = c
		d.addSchemas(c)
	}
	// Commands come behind the routes, which refer to their schemas.
	for i := range a.routes {
		d.addRoute(&a.routes[i])
	}
	for _, c := range list {
		d.addCommand(c)
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Sentinel", "version": a.opt.Version,
			"description": "Durable loops of steps, each step type a Wasm plugin. Every operation is a command; POST /v1/commands/{name} calls any of them.",
		},
		"paths": d.paths,
		"components": object{
			"schemas":         d.schemas,
			"securitySchemes": object{"bearer": object{"type": "http", "scheme": "bearer", "description": "The token that `sentinel token` prints."}},
			"responses": object{"Problem": object{
				"description": "An error, as RFC 9457 has it.",
				"content":     object{httpproblem.Type: object{"schema": ref("Problem")}},
			}},
		},
	}
}

// document is what is being made. It lives for one call of describe.
type document struct {
	paths   object                     // by path, each an object by method
	schemas object                     // components by name
	known   map[string]command.Command // by name
}

// ref refers to a schema among the components.
func ref(schema string) object { return object{"$ref": "#/components/schemas/" + schema} }

// addRoute adds the operation of a line of the table.
func (d *document) addRoute(route *Route) {
	path := placeholder.ReplaceAllString(route.Pattern, "{$1}")
	// The x- members are for people who read the document to secure a proxy, and
	// for our own tests.
	op := object{
		"operationId": route.Name, "summary": route.Summary, "tags": []string{tagName(route.Pattern)},
		"parameters": d.parameters(route), "responses": d.responses(route), "security": security(route.Access),
		"x-sentinel-access": string(route.Access),
	}
	if route.Command != "" {
		op["x-sentinel-command"] = route.Command
	}
	if strings.Contains(route.Pattern, "...}") {
		op["description"] = "The name has slashes, which stay as they are. Each command is also listed as a path of its own."
	}
	switch {
	case route.raw:
		op["requestBody"] = object{"content": object{"*/*": object{"schema": object{}}}}
	case route.body == "*":
		op["requestBody"] = object{"content": jsonContent(d.body(route))}
	case route.body != "":
		op["requestBody"] = object{"required": true, "content": jsonContent(d.body(route))}
	}
	// Webhooks may come by GET, and OpenAPI knows no body of a GET.
	if route.Method == http.MethodGet {
		delete(op, "requestBody")
	}
	d.put(path, route.Method, op)
}

// put adds an operation to the item of its path.
func (d *document) put(path, method string, op object) {
	item, _ := d.paths[path].(object)
	if item == nil {
		item = object{}
		d.paths[path] = item
	}
	item[strings.ToLower(method)] = op
}

// tagName groups operations by resource.
func tagName(pattern string) string {
	parts := strings.Split(strings.TrimPrefix(pattern, "/"), "/")
	if parts[0] == "v1" && len(parts) > 1 {
		return parts[1]
	}
	return "process"
}

// security is what a caller has to bring. An empty list, unlike none at all,
// says that the operation needs nothing.
func security(access Access) []object {
	if access == AccessToken {
		return []object{{"bearer": []string{}}}
	}
	return []object{}
}

// jsonContent is a body in JSON.
func jsonContent(schema object) object { return object{"application/json": object{"schema": schema}} }

// parameters are those of path, query and header.
func (d *document) parameters(route *Route) []object {
	list := []object{}
	for _, name := range route.placeholders() {
		kind := "string"
		if name == "revision" {
			kind = "integer"
		}
		list = append(list, object{"name": name, "in": "path", "required": true, "schema": object{"type": kind}})
	}
	// Those of the query may all be left out.
	for _, p := range route.Query {
		kind := p.Type
		if kind == typeDuration {
			kind = "string"
		}
		param := object{"name": p.Name, "in": "query", "description": p.Summary, "schema": object{"type": kind}}
		if p.Type == "list" {
			param["schema"], param["style"], param["explode"] = object{"type": "array", "items": object{"type": "string"}}, "form", false
		}
		list = append(list, param)
	}
	if route.match != matchNone {
		list = append(list, object{
			"name": "If-Match", "in": "header", "required": route.match == matchRequired, "schema": object{"type": "string"},
			"description": `The ETag of what the edit was made on, "7", or * for whatever is there.`,
		})
	}
	if route.Method == http.MethodPost && !route.raw {
		list = append(list, object{
			"name": keyHeader, "in": "header", "schema": object{"type": "string", "maxLength": 200},
			"description": "A second request with the same key acts no second time, if the command is idempotent.",
		})
	}
	return list
}

// responses are the success of a route and the problem that anything else is.
func (d *document) responses(route *Route) object {
	out := object{"default": object{"$ref": "#/components/responses/Problem"}}
	// One success and one problem: every status of an error has the same body.
	status := max(route.Status, http.StatusOK)
	if route.Status == http.StatusSwitchingProtocols {
		status = route.Status
	}
	good := object{"description": http.StatusText(status)}
	// A hook answers JSON too, but what a mount answers is its own business.
	media := route.media
	if media == "" && status != http.StatusSwitchingProtocols && !route.raw {
		media = "application/json"
	}
	if media != "" {
		schema := object{}
		// Where the answer is shaped, it is no longer what the command's schema
		// describes.
		if route.answer == nil && len(d.known[route.Command].Output()) > 0 {
			schema = ref(schemaName(route.Command, "output"))
		}
		good["content"] = object{media: object{"schema": schema}}
	}
	out[strconv.Itoa(status)] = good
	return out
}

// addCommand adds a command as a path of its own below the universal door.
func (d *document) addCommand(c command.Command) {
	good := object{"description": "The result."}
	if len(c.Output()) > 0 {
		good["content"] = jsonContent(ref(schemaName(c.Name, "output")))
	} else {
		good["content"] = jsonContent(object{})
	}
	d.put("/v1/commands/"+c.Name, http.MethodPost, object{
		"operationId": "command/" + c.Name, "summary": c.Summary,
		"tags": []string{"command " + strings.Split(c.Name, "/")[0]}, "security": security(AccessToken),
		"x-sentinel-access": string(AccessToken), "x-sentinel-command": c.Name,
		"x-sentinel-effect": c.Effect, "x-sentinel-readOnly": c.ReadOnly(), "x-sentinel-idempotent": c.Idempotent,
		"requestBody": object{"content": jsonContent(ref(schemaName(c.Name, "input")))},
		"responses":   object{"200": good, "default": object{"$ref": "#/components/responses/Problem"}},
	})
}
