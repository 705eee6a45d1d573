//go:build race

package schema

// raceEnabled shortens what the race detector makes ten times as slow.
const raceEnabled = true
