package livefeed

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Rooms are topics with the events about tickets: those of one ticket, of the tickets of
// a project or session, or of all. A host is one tenant, so the token that opens a socket
// opens its rooms. Clients of older trackers use messages with a type for them.
const (
	RoomTenant    = "tenant"
	ticketRoom    = "ticket:"
	projectRoom   = "project:"
	sessionRoom   = "session:"
	typeSubscribe = "subscribe"
	typeLeave     = "unsubscribe"
	typePing      = "ping"
)

// Codes with which a socket without access is closed. A page does not see the status of
// a response that refuses a WebSocket, so the socket is opened first.
const (
	StatusNoToken  = 4001
	StatusBadToken = 4002
)

// isRoom reports whether a topic is a room.
func isRoom(topic string) bool {
	return topic == RoomTenant || strings.HasPrefix(topic, ticketRoom) || strings.HasPrefix(topic, projectRoom) || strings.HasPrefix(topic, sessionRoom)
}

// roomEvents are the events of rooms.
var roomEvents = map[string]bool{
	"ticket:update": true, "ticket:progress": true, "ticket:activity": true, "tickets:generated": true, "pr:created": true,
}

// roomsOf returns the rooms that an event belongs to.
func roomsOf(e sentinels.Event) []string {
	if !roomEvents[e.Name] {
		return nil
	}
	var about struct {
		Ticket  string `json:"ticket_id"`
		Project string `json:"project"`
		Session string `json:"session"`
	}
	if strictjson.DecodeOpen(e.Data, &about, strictjson.Unlimited()) != nil {
		return nil // emitted by a sentinel, and not about a ticket
	}
	rooms := []string{RoomTenant}
	for prefix, id := range map[string]string{ticketRoom: about.Ticket, projectRoom: about.Project, sessionRoom: about.Session} {
		if id != "" {
			rooms = append(rooms, prefix+id)
		}
	}
	return rooms
}

// checkRoom is the first problem of a message with a type.
func (r request) checkRoom() error {
	switch {
	case len(r.Subscribe)+len(r.Unsubscribe) > 0:
		return abi.New(abi.BadFields, "read message: type and subscribe exclude each other")
	case r.Type == typePing && r.Room == "":
		return nil
	case r.Type != typeSubscribe && r.Type != typeLeave:
		return abi.New(abi.BadFields, fmt.Sprintf("read message: type %q: want subscribe, unsubscribe or ping", textcut.Mark(r.Type, shownText)))
	case !isRoom(r.Room):
		return badTopic(r.Room, "unknown room")
	}
	return CheckTopic(r.Room)
}

// connected is the first message of a socket.
type connected struct {
	Hello state  `json:"hello"`
	Type  string `json:"type"`
}

// roomMessage answers a message with a type.
type roomMessage struct {
	Type    string `json:"type"`
	Room    string `json:"room,omitempty"`
	Message string `json:"message,omitempty"`
}

// executeRoom executes a message with a type and returns the answer. A mistake in it is
// answered, and does not end the socket.
func (s *socket) executeRoom(r request, err error) ([]byte, error) {
	answer := roomMessage{Type: "pong"}
	switch {
	case err != nil:
	case r.Type == typeSubscribe:
		err = s.sub.Add(r.Room)
		answer = roomMessage{Type: "subscribed", Room: r.Room}
	case r.Type == typeLeave:
		s.sub.Remove(r.Room)
		answer = roomMessage{Type: "unsubscribed", Room: r.Room}
	}
	if errors.Is(err, ErrClosed) {
		return nil, err
	}
	if err != nil {
		answer = roomMessage{Type: "error", Room: textcut.Mark(r.Room, shownText), Message: err.Error()}
	}
	return appendJSON(nil, answer), nil
}

// appendRoom appends the members that clients of rooms read: the name of the event, the
// room, the data, and those of its fields that older trackers have beside it.
func appendRoom(b []byte, e Entry) []byte {
	var event struct {
		Data json.RawMessage `json:"data"`
	}
	var about struct {
		Ticket json.RawMessage `json:"ticket_id"`
		State  json.RawMessage `json:"state"`
	}
	_ = json.Unmarshal(e.Body(), &event)   // a body that was too long has a problem instead
	_ = json.Unmarshal(event.Data, &about) // data without these fields has none
	b = append(b, `"type":`...)
	b = appendJSON(b, e.Kind)
	b = append(b, `,"room":`...)
	b = appendJSON(b, e.Topic)
	for name, value := range map[string]json.RawMessage{"ticketId": about.Ticket, "state": about.State, "data": event.Data} {
		if len(value) > 0 {
			b = append(append(appendJSON(append(b, ','), name), ':'), value...)
		}
	}
	b = append(b, `,"timestamp":"`...)
	b = e.Time.UTC().AppendFormat(b, time.RFC3339Nano)
	return append(b, `",`...)
}

// Refuse opens a socket and closes it with a code, for clients without access. It does not wait for the
// close frame of the client, which would keep the connection for as long as it likes.
func Refuse(w http.ResponseWriter, r *http.Request, given bool) {
	conn, err := websocket.Accept(unread{w}, r, &websocket.AcceptOptions{Subprotocols: []string{Subprotocol}, InsecureSkipVerify: true}) // the caller has checked the origin
	if err != nil {
		return // Accept has answered
	}
	code, reason := websocket.StatusCode(StatusNoToken), "no token"
	if given {
		code, reason = StatusBadToken, "the token is not valid"
	}
	_ = conn.Close(code, reason) // the client may have left
}

// unread is a response whose connection reports an expired deadline to each read once it is hijacked.
type unread struct{ http.ResponseWriter }

// Hijack implements [http.Hijacker].
func (u unread) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(u.ResponseWriter).Hijack()
	if err == nil {
		err = conn.SetReadDeadline(time.Unix(1, 0))
	}
	return conn, rw, err
}
