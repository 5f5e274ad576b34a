package chat

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Options say where messages lead. The zero value works.
type Options struct {
	// Chain returns how many runs an event has passed through that the given
	// run emits now, and the sentinels they are of, in order. Default: the run
	// that posts begins the chain.
	Chain func(sentinels.RunID) (hops int, path []string)
}

type family struct{ opt Options }

// Collections of this family. Other commands may read the first.
const (
	Collection = "chat"       // one document a message
	rooms      = "chat.rooms" // room name -> how many messages it has
	sent       = "chat.sent"  // digest of a call's key -> the message it sent
)

// Commands returns the family collaboration/chat/*.
func Commands(opt Options) []command.Command {
	f := family{opt}
	return []command.Command{
		command.New("collaboration/chat/send", "Post a message in a chat room.",
			command.Options{Effect: command.Changes, Idempotent: true, InStore: true}, f.send),
		command.New("chat/send", "Post a message, as recipes of the original system do.",
			command.Options{Effect: command.Changes, Idempotent: true, InStore: true, Private: true, Aliases: map[string]string{"content": "message"}}, f.sendShort),
		command.New("collaboration/chat/history", "Read the latest messages of a chat room, oldest first.",
			command.Options{Effect: command.Reads, Idempotent: true, InStore: true}, history),
	}
}

// validRoom leaves no leading or final dot, so that ids stay safe as file names.
var validRoom = lazyregexp.New(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?$`)

// checkCall refuses what no room is called; a room's name is part of ids.
func checkCall(call *command.Call, room string) error {
	if !validRoom.MatchString(room) {
		return &abi.Error{
			Code: abi.BadFields, Permanent: true, Field: "room",
			Message: fmt.Sprintf("%s: room %.80q is no room name", call.Command, room),
			Hint:    "letters, digits, _, - and inner dots, at most 64",
		}
	}
	if call.Records == nil {
		return abi.New(abi.Internal, call.Command+": the call has no records")
	}
	return nil
}

// messageID numbers the messages of a room so that their ids sort like them.
func messageID(room string, n uint64) string { return fmt.Sprintf("%s.%012d", room, n) }

// number is the inverse of messageID for one room.
func number(room, id string) (uint64, bool) {
	digits, ok := strings.CutPrefix(id, room+".")
	if !ok || len(digits) != 12 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && n > 0
}
