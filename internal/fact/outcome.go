package fact

// Outcome is what one delivery did (docs/identity.md, What one delivery does).
type Outcome string

// The outcomes.
const (
	// New: the event was not known.
	New Outcome = "new"
	// Retry: the whole body was received before, transport included.
	Retry Outcome = "retry"
	// Equivalent: the event was known, only transport differs.
	Equivalent Outcome = "equivalent"
	// Redescribed: equivalent, and a drifting descriptive field differs.
	Redescribed Outcome = "redescribed"
	// Collision: the event was known with other content.
	Collision Outcome = "collision"
)
