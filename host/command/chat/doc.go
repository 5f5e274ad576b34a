// Package chat is the part of the HOST process through which sentinels and
// people talk in rooms: collaboration/chat/send and history.
//
// Messages are documents in the call's Records, so a message is there exactly
// once or not at all, whatever crashes. A room exists once it was written to.
// Its messages are numbered without gaps from 1, in the order in which they
// were committed.
package chat
