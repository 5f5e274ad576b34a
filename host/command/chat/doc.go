// Package chat implements the commands for messages in chat rooms of sentinels and
// users: collaboration/chat/send and history.
//
// Messages are documents in the call's Records, so a message is stored exactly once
// or not at all, also after a crash. A room exists from its first message on.
// Its messages are numbered without gaps from 1, in the order in which they
// were committed.
package chat
