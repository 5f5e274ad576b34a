package role

// A Notice is the fields of a notifier, clause A9.5. The output of a notifier is not read.
type Notice struct {
	Title    string `json:"title"`
	Text     string `json:"text"`
	Severity string `json:"severity"` // info, warning or error
	Key      string `json:"key"`      // the same for all repetitions of a message, letters, digits and _
	Event    string `json:"event,omitempty"`
	Ticket   string `json:"ticket,omitempty"`
	Run      string `json:"run,omitempty"`
	URL      string `json:"url,omitempty"`
}
