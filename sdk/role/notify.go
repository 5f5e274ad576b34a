package role

// A Notice is the fields of a notifier, clause A9.5. The output of a notifier is not read.
type Notice struct {
	Title    string `json:"title"`
	Text     string `json:"text"`
	Severity string `json:"severity"` // info, warning, error or critical
	Event    string `json:"event,omitempty"`
	Ticket   string `json:"ticket,omitempty"`
	Run      string `json:"run,omitempty"`
	URL      string `json:"url,omitempty"`
}
